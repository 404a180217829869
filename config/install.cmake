# The files that `cmake --install` lays down: bin/tune with tune-worker beside it, the static libraries, the
# public headers below include/tune-cpp, and the package that find_package(tune) reads.
include(CMakePackageConfigHelpers)
include(config/public_headers.cmake)
set(tune_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tune)

install(TARGETS tune-program tune-worker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET tune-view)
  install(TARGETS tune-view RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS tune_core tune_platform tune_agent tune_schedulers tune_trainables tune_tune
  EXPORT tune-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT tune-targets NAMESPACE tune:: DESTINATION ${tune_package_dir})

set(tune_installed_headers ${tune_public_headers})
if(TUNE_WITH_TORCH)
  list(APPEND tune_installed_headers ${tune_public_torch_headers})
  install(TARGETS tune_torch EXPORT tune-torch-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  if(TARGET tune_torch_cuda)
    install(TARGETS tune_torch_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
  install(EXPORT tune-torch-targets NAMESPACE tune:: DESTINATION ${tune_package_dir})
  install(FILES config/FindTuneTorch.cmake config/TuneTorchCuda.cmake DESTINATION ${tune_package_dir})
endif()
foreach(header IN LISTS tune_installed_headers)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tune-cpp/${folder})
endforeach()
# For programs in C, C++ and Fortran that run as trials: they need nothing else of tune.
install(FILES trainables/command/tune_report.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

install(TARGETS tune_signals LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY trainables/python/tune DESTINATION ${CMAKE_INSTALL_DATADIR}/tune/python
  FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)

configure_package_config_file(config/tune-config.cmake.in ${PROJECT_BINARY_DIR}/tune-config.cmake
  INSTALL_DESTINATION ${tune_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tune-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tune-config.cmake ${PROJECT_BINARY_DIR}/tune-config-version.cmake
  DESTINATION ${tune_package_dir})
