# SPDX-License-Identifier: Apache-2.0
# Finds a BLAS with the C interface; OpenBLAS is preferred. Nothing is run.
#
#   CBLAS_FOUND, CBLAS_INCLUDE_DIR, CBLAS_LIBRARY
#   CBLAS::CBLAS    the imported target
#
# Hints: CBLAS_ROOT, or the two cache variables themselves.
include(CheckCXXSymbolExists)
include(CMakePushCheckState)
include(FindPackageHandleStandardArgs)

find_path(CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas openblas-pthread openblas-serial openblas-openmp)
find_library(CBLAS_LIBRARY NAMES openblas blis cblas blas PATH_SUFFIXES openblas)

# A library called "blas" often has the Fortran interface only.
if(CBLAS_INCLUDE_DIR AND CBLAS_LIBRARY)
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_INCLUDES "${CBLAS_INCLUDE_DIR}")
  set(CMAKE_REQUIRED_LIBRARIES "${CBLAS_LIBRARY}")
  set(CMAKE_REQUIRED_QUIET ON)
  check_cxx_symbol_exists(cblas_sgemm cblas.h CBLAS_HAS_SGEMM)
  cmake_pop_check_state()
endif()

find_package_handle_standard_args(CBLAS
  REQUIRED_VARS CBLAS_LIBRARY CBLAS_INCLUDE_DIR CBLAS_HAS_SGEMM
  REASON_FAILURE_MESSAGE "install libopenblas-dev, or set CBLAS_ROOT")
mark_as_advanced(CBLAS_INCLUDE_DIR CBLAS_LIBRARY)

if(CBLAS_FOUND AND NOT TARGET CBLAS::CBLAS)
  add_library(CBLAS::CBLAS UNKNOWN IMPORTED)
  set_target_properties(CBLAS::CBLAS PROPERTIES
    IMPORTED_LOCATION "${CBLAS_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${CBLAS_INCLUDE_DIR}")
endif()
