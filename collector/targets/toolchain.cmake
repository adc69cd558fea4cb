# Builds libmysqlclient for the target of the cargo build script that runs CMake. cargo-zigbuild names the
# compilers in CC_<target>, CXX_<target> and AR_<target>.
string(REPLACE "-" "_" target "$ENV{TARGET}")
string(REGEX REPLACE "-.*" "" machine "$ENV{TARGET}")
set(CMAKE_C_COMPILER $ENV{CC_${target}})
set(CMAKE_CXX_COMPILER $ENV{CXX_${target}})
set(CMAKE_AR $ENV{AR_${target}})
set(CMAKE_RANLIB $ENV{RANLIB_${target}})
# A library of glibc, which zig links by name: no file of it exists that CMake could find.
set(RESOLV_LIBRARY resolv CACHE STRING "")
if(NOT machine STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
    set(CMAKE_SYSTEM_NAME Linux)
    set(CMAKE_SYSTEM_PROCESSOR ${machine})
    # The build runs programs that it has compiled.
    set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${machine}-static -L /usr/${machine}-linux-gnu)
    set(CMAKE_PROJECT_MySQL_INCLUDE ${CMAKE_CURRENT_LIST_DIR}/comp_err.cmake)
endif()
