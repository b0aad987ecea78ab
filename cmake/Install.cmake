# What `cmake --install` puts where, and how others find it: find_package(mimus) gives mimus::mimus and
# mimus::policy, pkg-config gives mimus and mimus-policy.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mimus)

file(RELATIVE_PATH to_lib /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${CMAKE_INSTALL_LIBDIR})
set_target_properties(mimus-cli PROPERTIES INSTALL_RPATH $ORIGIN/${to_lib}) # the tree can be moved
add_library(mimus::mimus ALIAS mimus)
add_library(mimus::policy ALIAS mimus-policy)
set_target_properties(mimus-policy PROPERTIES EXPORT_NAME policy)
install(TARGETS mimus mimus-policy mimus-cli EXPORT mimus RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES include/mimus.h TYPE INCLUDE)
install(FILES LICENSE README.md CHANGELOG.md TYPE DOC)
install(DIRECTORY docs TYPE DOC) # where help, header and README point to
install(EXPORT mimus NAMESPACE mimus:: DESTINATION ${package_dir})

# A static library hands its own libraries on; a shared one has them inside.
set(mimus_dependencies "")
if(NOT BUILD_SHARED_LIBS)
  string(CONCAT mimus_dependencies
    "include(CMakeFindDependencyMacro)\n"
    "find_dependency(PkgConfig)\n"
    "pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)\n"
    "pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)\n"
    "pkg_search_module(HDF5 REQUIRED IMPORTED_TARGET hdf5-serial hdf5)\n"
    "pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)\n"
    "pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)\n"
    "pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)\n")
endif()

configure_package_config_file(cmake/mimusConfig.cmake.in ${PROJECT_BINARY_DIR}/mimusConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mimusConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mimusConfig.cmake ${PROJECT_BINARY_DIR}/mimusConfigVersion.cmake
  DESTINATION ${package_dir})

function(mimus_pkgconfig library description packages libraries)
  set(requires "")
  set(libs "")
  if(NOT BUILD_SHARED_LIBS)
    set(requires "Requires: ${packages}\n")
    set(libs " ${libraries}")
  endif()
  configure_file(cmake/pkgconfig.pc.in ${PROJECT_BINARY_DIR}/${library}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${library}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
file(RELATIVE_PATH pc_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
mimus_pkgconfig(mimus "Trains policies from recorded play on any OpenCL device"
  "jansson libxxhash libzip libprotobuf-c ${HDF5_MODULE_NAME} zlib" "-lcsv -lm -l${CMAKE_DL_LIBS}")
mimus_pkgconfig(mimus-policy "Records play and runs trained policies in a game, without OpenCL"
  "jansson libxxhash" "-lm")
