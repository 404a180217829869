# Writes the source that holds the page's files: cmake -DFOLDER=... -DOUTPUT=... -P embed.cmake
file(GLOB files RELATIVE ${FOLDER} ${FOLDER}/*.html ${FOLDER}/*.css ${FOLDER}/*.js ${FOLDER}/*.svg)
list(SORT files)
set(text "#include \"tune/view/assets.h\"\n\nnamespace tune::view {\nnamespace {\n")
set(table "")
set(number 0)
foreach(name IN LISTS files)
  file(READ ${FOLDER}/${name} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND text "constexpr unsigned char k${number}[] = {${bytes}0};\n")
  string(APPEND table "      {\"${name}\", text(k${number})},\n")
  math(EXPR number "${number} + 1")
endforeach()
string(APPEND text "
template <std::size_t Size>
std::string_view text(const unsigned char (&bytes)[Size]) {
  return {reinterpret_cast<const char*>(bytes), Size - 1};
}
}  // namespace

const std::vector<Asset>& assets() {
  static const std::vector<Asset> all = {
${table}  };
  return all;
}

}  // namespace tune::view
")
file(WRITE ${OUTPUT} "${text}")
