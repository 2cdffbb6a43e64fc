# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a Debian package of mperf must be, whatever architecture it was built for."""
import re
import subprocess
import tempfile
from pathlib import Path

from machine import ROOT

CONF = "/etc/mperf/mperf.conf"
# As readelf names them; what Debian calls the architecture is the key.
ELF_MACHINE = {"amd64": "Advanced Micro Devices X86-64", "arm64": "AArch64", "riscv64": "RISC-V"}
PROGRAMS = ["/usr/bin/mperfctl", "/usr/sbin/mperfd", "/usr/libexec/mperf/mperf-namer",
            "/usr/libexec/mperf/mperf-roofs", "/usr/bin/mperf-platform-check"]
FILES = [*PROGRAMS, CONF, "/usr/lib/systemd/system/mperfd.service",
         "/usr/lib/systemd/system/mperfd.socket", "/usr/lib/systemd/system/mperf-debuginfod.service",
         "/usr/lib/systemd/system/mperf-debuginfod.socket", "/usr/lib/sysusers.d/mperf.conf",
         "/usr/lib/tmpfiles.d/mperf.conf", "/usr/lib/sysctl.d/30-mperf.conf",
         "/usr/share/doc/mperf/copyright", "/usr/share/bash-completion/completions/mperfctl",
         "/usr/lib/mperf/libmperf-ompt.so", "/usr/share/zsh/vendor-completions/_mperfctl", "/usr/share/mperf/platforms/README.md"]
# What compiles programs that count themselves is a package of its own, where its plugins are built.
COMPILER = ["/usr/bin/mperf-cc", "/usr/bin/mperf-c++", "/usr/include/mperf.h",
            "/usr/lib/mperf/libmperf-runtime.a", "/usr/share/man/man1/mperf-cc.1.gz",
            "/usr/share/man/man1/mperf-c++.1.gz", "/usr/share/man/man7/mperf-runtime.7.gz"]
COMPILER_PAGES = ("mperf-cc.", "mperf-runtime.")
CODE = "/usr/libexec/mperf/mperf-code"
# Debian 13 has a t64 behind the names of two. libbpf's is loaded where BPF is.
LIBRARIES = {"libbpf1", "libc6", "libdw1", "libelf1", "libjansson4", "liblzma5", "libncursesw6",
             "libprotobuf-c1", "libseccomp2", "libsqlite3-0", "libsystemd0", "libtinfo6",
             "libxxhash0", "libzstd1", "zlib1g"}


def said(*command):
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout


def field(deb, name):
    return said("dpkg-deb", "-f", deb, name).strip()


def files(deb):
    return set(re.findall(r" \.(/\S+[^/\s])(?: -> \S+)?$", said("dpkg-deb", "-c", deb), re.M))


def dependencies(deb):
    """{package: the least version of it, or None}, of alternatives the first."""
    found = (re.match(r"\s*([a-z0-9.+-]+)(?: \(>= (\S+)\))?", part)
             for part in field(deb, "Depends").split(","))
    return {match[1]: match[2] for match in found}


def elf(path):
    """An ELF file's machine, build id and the names of its sections."""
    text = said("readelf", "-hnSW", path)
    return (re.search(r"Machine: +(.+)", text)[1], re.search(r"Build ID: ([0-9a-f]+)", text)[1],
            set(re.findall(r"^ +\[ *\d+\] (\.\S+)", text, re.M)))


def is_right(folder, arch, index=None):
    """The package and its debug symbols in that folder are whole, are of that architecture, and want
    libraries by version. With index, what dpkg would know of a tree, those that the tree has."""
    deb, = folder.glob(f"mperf_*_{arch}.deb")
    symbols, = folder.glob(f"mperf-dbgsym_*_{arch}.deb")
    version = re.match(r".*\((.+)\)", (ROOT / "systemd/debian/changelog").read_text())[1]
    for path, name in (deb, "mperf"), (symbols, "mperf-dbgsym"):
        assert [field(path, f) for f in ("Package", "Version", "Architecture")] \
            == [name, version, arch], said("dpkg-deb", "-f", path)
    assert field(symbols, "Depends") == f"mperf (= {version})", symbols
    wants_libraries(dependencies(deb), index)
    holds_all(deb)
    with tempfile.TemporaryDirectory() as unpacked:
        for path in deb, symbols:
            said("dpkg-deb", "-x", path, unpacked)
        for program in PROGRAMS:
            machine, build_id, sections = elf(unpacked + program)
            assert machine == ELF_MACHINE[arch], (program, machine)
            assert ".symtab" not in sections and ".debug_info" not in sections, (program, sections)
            apart = Path(unpacked, "usr/lib/debug/.build-id", build_id[:2], build_id[2:] + ".debug")
            assert elf(apart)[1] == build_id and ".debug_info" in elf(apart)[2], apart


def wants_libraries(wanted, index):
    assert {name.removesuffix("t64") for name in wanted if name.startswith(("lib", "zlib"))} == LIBRARIES, \
        wanted
    assert "systemd" in wanted or "default-systemd" in wanted, wanted
    if not index:
        return
    status = re.findall(r"^Package: (\S+)\n(?:.+\n)*?Version: (\S+)$",
                        (index / "status").read_text(), re.M)
    there = dict(status)
    for name in wanted:
        if name.startswith(("lib", "zlib")):
            assert name in there and wanted[name], (name, wanted[name], there)
            said("dpkg", "--compare-versions", wanted[name], "le", there[name])


def holds_all(deb):
    found = files(deb)
    pages = [p for p in (ROOT / "man").glob("*.[1578]") if not p.name.startswith(COMPILER_PAGES)]
    wanted = {*FILES, *(f"/usr/share/man/man{p.suffix[1]}/{p.name}.gz" for p in pages)}
    wanted |= {f"/usr/share/mperf/{p.relative_to(ROOT / 'platform-db')}"
               for p in (ROOT / "platform-db" / "platforms").rglob("*.json")}
    wanted |= {f"/usr/share/doc/mperf/{p.relative_to(ROOT / 'man')}"
               for p in (ROOT / "man" / "examples").rglob("*") if p.is_file()}
    assert wanted <= found, wanted - found
    assert not found & {*COMPILER, CODE}, found & {*COMPILER, CODE}
    assert all(f.startswith(("/usr/", "/etc/")) for f in found), found  # Debian 13 wants no others
    assert said("dpkg-deb", "-I", deb, "conffiles").split() == [CONF]
    assert "mperfd.service" in said("dpkg-deb", "-I", deb, "postinst")


def reader_is_right(folder, arch):
    """The package of what reads machine code has that alone, for the mperf that it was built with."""
    deb, = folder.glob(f"mperf-code_*_{arch}.deb")
    found = files(deb)
    assert CODE in found and not any("/bin/" in f for f in found), found
    wanted = field(deb, "Depends")
    assert f"mperf (= {field(deb, 'Version')})" in wanted and "libllvm19" in wanted, wanted
    assert "mperf-code" in field(next(folder.glob(f"mperf_*_{arch}.deb")), "Suggests")
    with tempfile.TemporaryDirectory() as unpacked:
        said("dpkg-deb", "-x", deb, unpacked)
        machine, _, sections = elf(unpacked + CODE)
        assert machine == ELF_MACHINE[arch] and ".symtab" not in sections, (machine, sections)
    return deb


def compiler_is_right(folder, arch):
    """The package of mperf-cc holds a plugin for each clang that it depends on, and the rest."""
    deb, = folder.glob(f"mperf-cc_*_{arch}.deb")
    found = files(deb)
    assert set(COMPILER) <= found, set(COMPILER) - found
    plugins = sorted(re.findall(r"/usr/lib/mperf/llvm-(\d+)/mperf-pass\.so", "\n".join(found)), reverse=True)
    assert plugins and plugins[0] == "19", found
    wanted = " | ".join(f"clang-{v}" for v in plugins)
    assert field(deb, "Depends").startswith(wanted + ","), field(deb, "Depends")
    assert any(re.fullmatch(r"/usr/lib/[\w-]+/pkgconfig/mperf\.pc", f) for f in found), found
    with tempfile.TemporaryDirectory() as unpacked:
        said("dpkg-deb", "-x", deb, unpacked)
        for version in plugins:
            machine, _, sections = elf(f"{unpacked}/usr/lib/mperf/llvm-{version}/mperf-pass.so")
            assert machine == ELF_MACHINE[arch] and ".symtab" not in sections, (machine, sections)
        text, = Path(unpacked, "usr/lib").glob("*/pkgconfig/mperf.pc")
        named = set(re.findall(r"^plugin(\d+)=", text.read_text(), re.M))
        assert named == set(plugins), text.read_text()
    return deb
