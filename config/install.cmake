# The files that `cmake --install` lays down: bin/tune with tune-worker beside it, the static libraries, the
# public headers below include/tune-cpp, and the packages that find_package(tune) and pkg-config read. By
# component: programs, development, torch.
include(CMakePackageConfigHelpers)
include(${PROJECT_SOURCE_DIR}/config/public_headers.cmake)
set(tune_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tune)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME programs)
install(TARGETS tune-program tune-worker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
foreach(program tune-program tune-worker)  # without the place of a wheel's libraries
  install(CODE "file(RPATH_CHANGE FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/$<TARGET_FILE_NAME:${program}>\"
    OLD_RPATH \"\\$ORIGIN/../_lib\" NEW_RPATH \"\")")
endforeach()
if(TARGET tune-view)
  install(TARGETS tune-view RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# The program itself writes these: one tree of commands, of which --help comes as well.
function(tune_install_page folder file)
  string(JOIN " " words ${ARGN})
  install(CODE "
    set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}\")
    file(MAKE_DIRECTORY \${folder})
    message(STATUS \"Writing: \${folder}/${file}\")
    execute_process(COMMAND $<TARGET_FILE:tune-program> ${words} OUTPUT_FILE \${folder}/${file}
      COMMAND_ERROR_IS_FATAL ANY)")
endfunction()
tune_install_page(${CMAKE_INSTALL_MANDIR}/man1 tune.1 man-page)
tune_install_page(${CMAKE_INSTALL_DATADIR}/bash-completion/completions tune completion bash)
tune_install_page(${CMAKE_INSTALL_DATADIR}/zsh/site-functions _tune completion zsh)
tune_install_page(${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d tune.fish completion fish)

# For programs in C, C++ and Fortran that run as trials: they need nothing else of tune.
install(FILES trainables/command/tune_report.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS tune_signals LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY trainables/python/tune DESTINATION ${CMAKE_INSTALL_DATADIR}/tune/python
  FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
install(TARGETS tune_core tune_platform tune_agent tune_schedulers tune_trainables
  tune_shared_memory tune_tune
  EXPORT tune-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT tune-targets NAMESPACE tune:: DESTINATION ${tune_package_dir})
foreach(header IN LISTS tune_public_headers)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tune-cpp/${folder})
endforeach()
configure_package_config_file(config/tune-config.cmake.in ${PROJECT_BINARY_DIR}/tune-config.cmake
  INSTALL_DESTINATION ${tune_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tune-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tune-config.cmake ${PROJECT_BINARY_DIR}/tune-config-version.cmake
  DESTINATION ${tune_package_dir})
file(RELATIVE_PATH tune_pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(config/tune.pc.in ${PROJECT_BINARY_DIR}/tune.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tune.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TUNE_WITH_TORCH)
  set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME torch)
  install(TARGETS tune_torch EXPORT tune-torch-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(TARGETS tune_torch_name LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  if(TARGET tune_torch_cuda)
    install(TARGETS tune_torch_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
  install(EXPORT tune-torch-targets NAMESPACE tune:: DESTINATION ${tune_package_dir})
  install(FILES config/FindTuneTorch.cmake config/TuneTorchCuda.cmake DESTINATION ${tune_package_dir})
  foreach(header IN LISTS tune_public_torch_headers)
    get_filename_component(folder ${header} DIRECTORY)
    install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tune-cpp/${folder})
  endforeach()
endif()
