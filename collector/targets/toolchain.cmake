# Builds libmysqlclient for the target of the cargo build script that runs CMake. cargo-zigbuild names the
# compilers in CC_<target>, CXX_<target> and AR_<target>.
string(REPLACE "-" "_" target "$ENV{TARGET}")
string(REGEX REPLACE "-.*" "" machine "$ENV{TARGET}")
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${machine})
set(CMAKE_C_COMPILER $ENV{CC_${target}})
set(CMAKE_CXX_COMPILER $ENV{CXX_${target}})
set(CMAKE_AR $ENV{AR_${target}})
set(CMAKE_RANLIB $ENV{RANLIB_${target}})
# The build runs programs that it has compiled.
if(NOT machine STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
    set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${machine}-static -L /usr/${machine}-linux-gnu)
endif()
# MySQL compiles its generator of error messages only where it does not cross-compile. CMake includes this
# file again after `project`, when it has set CMAKE_CROSSCOMPILING.
set(CMAKE_PROJECT_INCLUDE ${CMAKE_CURRENT_LIST_FILE})
set(CMAKE_CROSSCOMPILING FALSE)
