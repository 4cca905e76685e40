# SPDX-License-Identifier: Apache-2.0
# The package: one export set per component, in the build tree always, in the install tree with MESHWISE_INSTALL.
include(CMakePackageConfigHelpers)

set(meshwise_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/meshwise")
configure_package_config_file(cmake/meshwise-config.cmake.in meshwise-config.cmake
  INSTALL_DESTINATION "${meshwise_package_dir}"
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/meshwise-config-version.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)

set(meshwise_target_core meshwise)
set(meshwise_target_blas meshwise_blas)
foreach(component IN LISTS meshwise_components)
  export(TARGETS ${meshwise_target_${component}} NAMESPACE meshwise::
    FILE "${PROJECT_BINARY_DIR}/meshwise-${component}-targets.cmake")
endforeach()
configure_file(cmake/FindCBLAS.cmake "${PROJECT_BINARY_DIR}/FindCBLAS.cmake" COPYONLY)

if(NOT MESHWISE_INSTALL)
  return()
endif()

foreach(component IN LISTS meshwise_components)
  install(TARGETS ${meshwise_target_${component}} EXPORT meshwise-${component}-targets FILE_SET HEADERS)
  install(EXPORT meshwise-${component}-targets NAMESPACE meshwise:: DESTINATION "${meshwise_package_dir}")
endforeach()
install(FILES
  "${PROJECT_BINARY_DIR}/meshwise-config.cmake"
  "${PROJECT_BINARY_DIR}/meshwise-config-version.cmake"
  cmake/FindCBLAS.cmake
  DESTINATION "${meshwise_package_dir}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/meshwise")

# pkg-config files find the prefix from their own place, so that a moved prefix still works.
set(meshwise_pkgconfig_dir "${CMAKE_INSTALL_DATADIR}/pkgconfig")
file(RELATIVE_PATH meshwise_pc_prefix "/prefix/${meshwise_pkgconfig_dir}" "/prefix")
string(REGEX REPLACE "/$" "" meshwise_pc_prefix "${meshwise_pc_prefix}")
configure_file(cmake/meshwise.pc.in meshwise.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/meshwise.pc" DESTINATION "${meshwise_pkgconfig_dir}")
if("blas" IN_LIST meshwise_components AND CBLAS_LIBRARY)
  cmake_path(GET CBLAS_LIBRARY PARENT_PATH meshwise_cblas_dir)
  cmake_path(GET CBLAS_LIBRARY STEM LAST_ONLY meshwise_cblas_name)
  string(REGEX REPLACE "^lib" "" meshwise_cblas_name "${meshwise_cblas_name}")
  set(meshwise_cblas_libs "-l${meshwise_cblas_name}")
  if(NOT meshwise_cblas_dir IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    string(PREPEND meshwise_cblas_libs "-L${meshwise_cblas_dir} ")
  endif()
  set(meshwise_cblas_cflags "")
  if(NOT CBLAS_INCLUDE_DIR IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    set(meshwise_cblas_cflags "-I${CBLAS_INCLUDE_DIR}")
  endif()
  configure_file(cmake/meshwise-blas.pc.in meshwise-blas.pc @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/meshwise-blas.pc" DESTINATION "${meshwise_pkgconfig_dir}")
endif()
