# Debian packages of this build: `cpack` in the build folder makes tune_<version>_<architecture>.deb, the programs, and
# libtune-dev_..., static libraries and headers. LibTorch's part goes into libtune-torch-dev, with
# -DTUNE_DEB_TORCH=ON only: it works with the very LibTorch it was built with, which is not Debian's.
option(TUNE_DEB_TORCH "a Debian package for tune::torch as well" OFF)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tune)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "the authors of tune")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/config/debian/files.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL programs development)
if(TUNE_WITH_TORCH AND TUNE_DEB_TORCH)
  list(APPEND CPACK_COMPONENTS_ALL torch)
endif()
set(CPACK_COMPONENTS_GROUPING IGNORE)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

# redis-server is run by tune itself; the service that its package brings is not used.
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME tune)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_DEPENDS redis-server)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_RECOMMENDS python3)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS "libcurl4, openssh-client")
set(CPACK_DEBIAN_PROGRAMS_DESCRIPTION "hyperparameter search
Runs sweeps of programs in any language, of Python and of C++ trainables: searchers, schedulers
that stop weak trials early, a journal from which a killed sweep goes on, tables and pages.")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_CONTROL_EXTRA
  ${PROJECT_SOURCE_DIR}/config/debian/postinst ${PROJECT_SOURCE_DIR}/config/debian/prerm)

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtune-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "tune (= ${PROJECT_VERSION}), pkg-config, libhiredis-dev, libzmq3-dev, libyaml-cpp-dev, libfmt-dev, libre2-dev")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "hyperparameter search, for programs in C++
Static libraries, headers, and files for CMake and pkg-config.")

set(CPACK_DEBIAN_TORCH_PACKAGE_NAME libtune-torch-dev)
set(CPACK_DEBIAN_TORCH_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_TORCH_PACKAGE_DEPENDS
  "libtune-dev (= ${PROJECT_VERSION}), libjpeg62-turbo-dev, libpng-dev")
set(CPACK_DEBIAN_TORCH_DESCRIPTION "hyperparameter search, for programs with LibTorch
Needs the LibTorch that it was built with.")
include(CPack)
