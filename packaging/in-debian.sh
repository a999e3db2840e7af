# SPDX-License-Identifier: MIT OR Apache-2.0
# The part of packaging/test-deb that runs inside of a fresh Debian, as its root: installs, uses, upgrades, removes and purges
# the package. /root has first.deb, second.deb (a greater version), in-debian.c and check-pyopencl.py.
set -euo pipefail
cd /root
export DEBIAN_FRONTEND=noninteractive HOME=/root

fail() { echo "package: $*" >&2; exit 1; }
step() { echo "-- $*"; }
quiet() { "$@" >/root/log 2>&1 || { cat /root/log >&2; fail "failed: $*"; }; }

# Everything outside of what packages may leave behind by the rules: logs, the linker's cache, apt's and dpkg's own state.
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /root -o -path /tmp -o -path /var/lib/dpkg \
        -o -path /var/lib/apt -o -path /var/cache -o -path /var/log \) -prune -o -print | sort
}

# Programs that know nothing of Pumice find it and run on it.
uses() {
    clinfo >/root/clinfo.txt
    grep -q 'Platform Name  *Pumice' /root/clinfo.txt || fail "clinfo sees no Pumice: $(head -20 /root/clinfo.txt)"
    [ "$(clinfo -l | grep -c 'Device #')" -ge 1 ] || fail "clinfo sees no device: $(clinfo -l)"
    ./in-debian || fail 'the OpenCL program'
    pumice info >/root/info.txt
    grep -q '^compiler: /' /root/info.txt || fail "pumice info: $(cat /root/info.txt)"
    pumice doctor >/root/doctor.txt || fail "pumice doctor: $(cat /root/doctor.txt)"
    grep -q '^  ok  *[^ ]*/pumice.icd: ' /root/doctor.txt || fail "pumice doctor sees no .icd file: $(cat /root/doctor.txt)"
    ! grep -q '^  BAD' /root/doctor.txt || fail "pumice doctor: $(cat /root/doctor.txt)"
    pumice run ./in-debian || fail 'the OpenCL program under pumice run'
    [ "$(dpkg-query -W -f '${Version}' pumice-opencl-icd)" = "$1" ] || fail 'another version is installed'
}

step 'installs'
# The loader, clinfo, Python and a compiler are there before, so that what is left at last is what Pumice left. Of the compilers that
# the package can do with the first that is offered, as a user gets it.
quiet apt-get install -y --no-install-recommends clinfo ocl-icd-opencl-dev opencl-c-headers gcc libc6-dev python3
cc -Wall -Werror -O1 -DCL_TARGET_OPENCL_VERSION=300 -o in-debian in-debian.c -lOpenCL
./in-debian && fail 'an OpenCL program runs without a driver'
quiet apt-get install -y --no-install-recommends $(dpkg-deb -f first.deb Depends | tr ',' '\n' | sed 's/|.*//; s/(.*//')
files >/root/before
quiet apt-get install -y --no-install-recommends ./first.deb
uses "$(dpkg-deb -f first.deb Version)"
dpkg --verify pumice-opencl-icd
# Completions and manual are where the shells and man look.
grep -q 'complete -F _pumice' /usr/share/bash-completion/completions/pumice || fail 'no completion for bash'
zgrep -q '^\.SH ENVIRONMENT' /usr/share/man/man1/pumice.1.gz || fail 'no manual page'
zgrep -q '^spirv-tools-sys' /usr/share/doc/pumice-opencl-icd/THIRD-PARTY.gz || fail 'no licences of what is compiled in'

step "PyOpenCL of Debian"
quiet apt-get install -y --no-install-recommends python3-pyopencl
quiet dpkg -s pumice-opencl-icd
! dpkg -s pocl-opencl-icd >/dev/null 2>&1 || fail 'Provides: opencl-icd does not count'
python3 /root/check-pyopencl.py || fail 'PyOpenCL'
quiet apt-get purge -y --autoremove python3-pyopencl

step 'upgrades, and keeps what the administrator wrote'
echo '# mine' >>/etc/OpenCL/vendors/pumice.icd
quiet apt-get install -y --no-install-recommends ./second.deb
grep -q '^# mine' /etc/OpenCL/vendors/pumice.icd || fail 'the .icd file was overwritten'
sed -i '/^# mine/d' /etc/OpenCL/vendors/pumice.icd
uses "$(dpkg-deb -f second.deb Version)"

step 'removes'
quiet apt-get remove -y pumice-opencl-icd
[ -e /etc/OpenCL/vendors/pumice.icd ] || fail 'removing took the configuration'
[ ! -e /usr/bin/pumice ] || fail 'removing left the command'
[ -z "$(clinfo -l)" ] || fail 'clinfo still sees a platform'

step 'installs again and purges'
quiet apt-get install -y --no-install-recommends ./second.deb
uses "$(dpkg-deb -f second.deb Version)"
quiet apt-get purge -y pumice-opencl-icd
files >/root/after
diff /root/before /root/after >/root/diff || fail "purging left or took files: $(head -40 /root/diff)"
