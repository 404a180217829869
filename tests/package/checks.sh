# Sourced by the tests of this folder: checks that end the test with their reason.
# shellcheck shell=bash

fail() {
  echo "error: $*" >&2
  exit 1
}
skip() {
  echo "skipped: $*"
  exit 77
}
expect() { # expect "what it is about" "text to be found" "where"
  [[ $3 == *"$2"* ]] || fail "$1: expected \"$2\" in: $3"
}
expect_none() {
  [[ $3 != *"$2"* ]] || fail "$1: did not expect \"$2\" in: $3"
}
