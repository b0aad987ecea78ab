"""Compiles recorded kernels for GPUs and prints what they take; ci/gpu-static.sh records them and calls this.

A recording (tests/shim/opencl.c) is a folder with HASH.cl, a program's source as OpenCL got it, settings in front, and
HASH.KERNEL.XxYxZ, its build options, for every kernel that was launched in groups of X x Y x Z. In the folder of
recordings, those whose name begins with a number are a GPU's, the first of them the reference; cpu is a CPU's.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile

LEAST_OCCUPANCY = 0.25

# A number that says no more than how much memory the machine's CPU device owns to.
UNNAMED = {"SHARD_SHIFT"}

# Not judged: of bench_mad in several widths and groups the fastest counts, whatever the device.
PROBES = {"bench_mad"}


# ---------------------------------------------------------------------------------------------- targets


@dataclasses.dataclass(frozen=True)
class Nvidia:
    """Limits of a multiprocessor: CUDA C++ Programming Guide 12.9, table "Technical Specifications per Compute
    Capability", and the allocation units of the CUDA occupancy calculator."""

    name: str
    card: str
    warps: int
    groups: int
    shared: int
    shared_unit: int
    shared_reserved: int  # a group
    registers: int = 16384  # of one of the four partitions that share the warps
    partitions: int = 4
    register_unit: int = 256  # a warp
    wave: int = 32

    def flags(self, clc):
        isa = ["-Xclang", "-target-feature", "-Xclang", "+ptx71"] if self.name >= "sm_80" else []
        # vload_half is core OpenCL, but clang 14 declares it for NVIDIA's target with this extension alone
        return ["-target", "nvptx64-unknown-nvcl", "-Dcl_khr_fp16", "-Xclang", "-target-cpu", "-Xclang", self.name, *isa, "-Xclang",
                "-mlink-builtin-bitcode", "-Xclang", os.path.join(clc, "nvptx64--nvidiacl.bc")]

    def occupancy(self, group, registers, shared):
        """Warps that a multiprocessor holds at once, and how many it could."""
        warps = -(-group // self.wave)
        a_warp = -(-max(registers, 1) * self.wave // self.register_unit) * self.register_unit
        by_registers = self.registers // a_warp * self.partitions // warps
        block = -(-(shared + self.shared_reserved) // self.shared_unit) * self.shared_unit
        by_shared = self.shared // block if block else self.groups
        return warps * min(self.warps // warps, self.groups, by_registers, by_shared), self.warps


@dataclasses.dataclass(frozen=True)
class Amd:
    """`waves` a SIMD holds at most, as LLVM counts them."""

    name: str
    card: str
    waves: int
    wave: int

    def flags(self, clc):
        return ["-target", "amdgcn-mesa-mesa3d", "-nogpulib", "-mcpu=" + self.name, "-Xclang",
                "-mlink-builtin-bitcode", "-Xclang", os.path.join(clc, "gfx900-amdgcn-mesa-mesa3d.bc")]


TARGETS = [
    Nvidia("sm_61", "GTX 1080 Ti", warps=64, groups=32, shared=98304, shared_unit=256, shared_reserved=0),
    Nvidia("sm_86", "RTX 3090", warps=48, groups=16, shared=102400, shared_unit=128, shared_reserved=1024),
    Amd("gfx900", "RX Vega 64", waves=10, wave=64),
    Amd("gfx1030", "RX 6900 XT", waves=16, wave=32),
]


# ------------------------------------------------------------------------------------------- recordings


@dataclasses.dataclass
class Program:
    id: str
    path: str
    file: str
    settings: dict
    options: list
    groups: dict  # of every kernel: (x, y, z)
    label: str = ""


@dataclasses.dataclass
class Row:
    kernel: str
    settings: str
    group: tuple
    target: str
    registers: int
    spilled: int  # bytes
    local: int  # bytes a work-item has in memory of its own
    shared: int  # bytes a group
    held: int  # warps
    most: int
    fmas: int  # in the inner loop
    loads: dict
    faults: list = dataclasses.field(default_factory=list)

    @property
    def occupancy(self):
        return self.held / self.most


def read_program(folder, name):
    path = os.path.join(folder, name + ".cl")
    with open(path, encoding="utf-8") as source:
        head, _, rest = source.read().partition("#line 1 ")
    program = Program(name, path, re.match(r'"([^"]+)"', rest)[1],
                      dict(re.findall(r"^#define (\w+) (.*)$", head, re.M)), [], {})
    for entry in sorted(os.listdir(folder)):
        launched = re.fullmatch(name + r"\.(\w+)\.(\d+)x(\d+)x(\d+)", entry)
        if launched:
            if launched[1] in program.groups:
                raise SystemExit(f"gpu_static.py: {program.file}: {launched[1]} is launched in groups of different "
                                 "sizes, which this table has no place for")
            program.groups[launched[1]] = tuple(int(n) for n in launched.groups()[1:])
            with open(os.path.join(folder, entry), encoding="utf-8") as options:
                program.options = options.read().split()
    return program


def read_programs(folder):
    """Every program once, those of the reference workload first; the others are labelled with what differs."""
    programs, reference = {}, {}
    for recording in sorted(r for r in os.listdir(folder) if r[0].isdigit()):
        path = os.path.join(folder, recording)
        for name in sorted(entry[:-3] for entry in os.listdir(path) if entry.endswith(".cl")):
            program = read_program(path, name)
            base = reference.setdefault(program.file, program)
            if name in programs:
                programs[name].groups.update(program.groups)
                continue
            programs[name] = program
            program.label = " ".join(f"{key} {value}" for key, value in program.settings.items()
                                     if key not in UNNAMED and base.settings.get(key) != value)
    return list(programs.values())


def kernels_of(folder):
    """The kernels that the files define, whatever #if they stand in."""
    found = set()
    for name in os.listdir(folder):
        if name.endswith(".cl"):
            with open(os.path.join(folder, name), encoding="utf-8") as source:
                found.update(re.findall(r"__kernel\s+void\s+(\w+)", source.read()))
    return found


def launched_on_cpus(folder):
    return {entry.split(".")[1] for entry in os.listdir(os.path.join(folder, "cpu")) if not entry.endswith(".cl")}


# --------------------------------------------------------------------------------------------- compiling


def run(command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise SystemExit(f"gpu_static.py: {' '.join(command)}\n{result.stdout}{result.stderr}")
    return result.stdout + result.stderr


def bodies(assembly, end):
    """The text of every function, by name."""
    found, name = collections.defaultdict(list), None
    for line in assembly.splitlines():
        begins = re.match(r"\s*(?:\.visible )?\.entry (\w+)|(\w+):\s+; @", line)
        if begins:
            name = begins[1] or begins[2]
        if name is not None:
            found[name].append(line)
            if end.match(line):
                name = None
    return found


FMA = re.compile(r"\s(fma\.rn\.f32|v_(?:fma|fmac|mad|mac|pk_fma)_(?:legacy_)?f32\S*)\s")
LOADS = {
    "local": re.compile(r"\s(ld\.shared|ds_read|ds_load)"),
    "global": re.compile(r"\s(ld\.global|global_load|flat_load|buffer_load)"),
}


def inner_loop(lines):
    """Multiply-adds and loads of a loop that holds no other: what stands between a label and a branch back to it. Of
    several, one that reads local memory, then the one with the most multiply-adds."""
    labels, loops = {}, []
    for number, line in enumerate(lines):
        label = re.match(r"\.?L?(BB\d+_\d+):", line)
        back = re.search(r"\s(?:bra|s_c?branch\w*)\s.*?(BB\d+_\d+)", line)
        if label:
            labels[label[1]] = number
        elif back and back[1] in labels:
            loops.append((labels[back[1]], number))
    inner = [loop for loop in loops
             if not any(other != loop and loop[0] <= other[0] and other[1] <= loop[1] for other in loops)]
    counts = [(sum(bool(FMA.search(line)) for line in lines[begin:end]),
               {kind: sum(bool(pattern.search(line)) for line in lines[begin:end]) for kind, pattern in LOADS.items()})
              for begin, end in inner]
    return max(counts, key=lambda count: (count[1]["local"] > 0, count[0]), default=(0, dict.fromkeys(LOADS, 0)))


def compile_nvidia(program, target, source, scratch, ptxas):
    cubin = os.path.join(scratch, "cubin")
    said = run([ptxas, "-arch=" + target.name, "-v", "-o", cubin, source])
    with open(source, encoding="utf-8") as ptx:
        text = bodies(ptx.read(), re.compile(r"^}"))
    for part in said.split("Compiling entry function ")[1:]:
        kernel = re.match(r"'(\w+)'", part)[1]
        if kernel not in program.groups:
            continue
        x, y, z = program.groups[kernel]
        registers = int(re.search(r"Used (\d+) registers", part)[1])
        shared = int((re.search(r"(\d+) bytes smem", part) or [0, 0])[1])
        frame, stores, loads = re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part).groups()
        yield Row(kernel, program.label, (x, y, z), target.name, registers, max(int(stores), int(loads)), int(frame),
                  shared, *target.occupancy(x * y * z, registers, shared), *inner_loop(text[kernel]))


def compile_amd(program, target, source, _scratch, _ptxas):
    with open(source, encoding="utf-8") as assembly:
        text = bodies(assembly.read(), re.compile(r"^; Occupancy: "))
    for kernel, group in program.groups.items():
        body = "\n".join(text[kernel])
        fact = lambda name: int(re.search(rf"^; {name}: (\d+)", body, re.M)[1])
        spilled = sum(int(n) for n in re.findall(r"; (\d+)-byte Folded (?:Spill|Reload)", body))
        yield Row(kernel, program.label, group, target.name, fact("NumVgprs"), spilled, fact("ScratchSize"),
                  fact("LDSByteSize"), fact("Occupancy"), target.waves, *inner_loop(text[kernel]))


def compile_program(program, target, tools):
    with tempfile.TemporaryDirectory() as scratch:
        source = os.path.join(scratch, "s")
        run([tools.clang, "-x", "cl", *program.options, "-Xclang", "-finclude-default-header", "-O3",
             *target.flags(tools.clc), "-S", "-o", source, program.path])
        how = compile_nvidia if isinstance(target, Nvidia) else compile_amd
        return list(how(program, target, source, scratch, tools.ptxas))


def without_twins(rows):
    """Without the kernels of other settings that come to the same as those of the reference workload."""
    facts = collections.defaultdict(list)
    for row in rows:
        facts[row.kernel, row.settings].append(dataclasses.replace(row, settings=""))
    return [row for row in rows if not row.settings or facts[row.kernel, row.settings] != facts.get((row.kernel, ""))]


def judge(row):
    if row.kernel in PROBES:
        return
    if row.spilled > 0:
        row.faults.append(f"spills {row.spilled} bytes")
    if row.occupancy < LEAST_OCCUPANCY:
        row.faults.append(f"occupancy {row.occupancy:.0%}")


# ---------------------------------------------------------------------------------------------- printing


def mix(row):
    if row.fmas == 0:
        return ""
    loads = [f"{count} {kind}" for kind, count in row.loads.items() if count]
    return f"{row.fmas} : {' + '.join(loads) or 0}"


def print_text(rows):
    titles = ["kernel", "group", "target", "registers", "spilled", "local", "shared", "warps", "occupancy", "fma : loads"]
    cells = [[f"{row.kernel} {row.settings}".strip(), "x".join(map(str, row.group)), row.target, str(row.registers),
              str(row.spilled), str(row.local), str(row.shared), f"{row.held}/{row.most}", f"{row.occupancy:.0%}",
              mix(row) + ("   <- " + ", ".join(row.faults) if row.faults else "")] for row in rows]
    widths = [max(len(line[i]) for line in [titles, *cells]) for i in range(len(titles))]
    for line in [titles, *cells]:
        print("  ".join(text.ljust(width) if i in (0, 1, 2, 9) else text.rjust(width)
                        for i, (text, width) in enumerate(zip(line, widths))).rstrip())


def markdown(rows):
    """A line a kernel, with the targets side by side; without the probes."""
    by_kernel = collections.defaultdict(dict)
    for row in (row for row in rows if row.kernel not in PROBES):
        by_kernel[row.kernel, row.settings][row.target] = row
    names = [target.name for target in TARGETS]
    lines = ["| kernel | group | shared | " + " | ".join(names) + " | loop, NVIDIA | loop, AMD |",
             "|---" * (len(names) + 5) + "|"]
    for (kernel, settings), by_target in by_kernel.items():
        one = by_target[names[0]]
        cells = [f"{by_target[name].registers}"
                 + (f" + {by_target[name].local} B" if by_target[name].local else "")
                 + f", {by_target[name].occupancy:.0%}" for name in names]
        mixes = [mix(by_target[name]) for name in (names[0], "gfx900")]
        group = " x ".join(str(n) for n in one.group if n > 1) or "1"
        lines.append(f"| {kernel}{', ' + settings if settings else ''} | {group} | {one.shared or ''} | "
                     + " | ".join(cells + mixes) + " |")
    return "\n".join(lines) + "\n"


def versions(tools):
    """Of the two compilers, as far as registers depend on them."""
    clang = re.search(r"clang version (\d+)", run([tools.clang, "--version"]))[1]
    ptxas = re.search(r"release ([\d.]+)", run([tools.ptxas, "--version"]))[1]
    return f"clang {clang}, ptxas {ptxas}"


MARKED = re.compile(r"(<!-- gpu-static, by )(.*?)( -->\n)(.*?)(<!-- /gpu-static -->\n)", re.S)


def check_document(path, rows, tools, update):
    """Whether the document's table, between two marks, is this one; `update` makes it so."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    found = MARKED.search(text)
    if not found:
        raise SystemExit(f"gpu_static.py: {path}: has no \"<!-- gpu-static, by ... -->\", table and \"<!-- /gpu-static -->\"")
    here, table = versions(tools), markdown(rows)
    if update:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text[:found.start()] + found[1] + here + found[3] + "\n" + table + "\n" + found[5] + text[found.end():])
        return True
    if found[2] != here:
        print(f"{path}: its table is by {found[2]}, and here are {here}: not compared")
        return True
    if found[4].strip() == table.strip():
        return True
    ours, theirs = table.strip().splitlines(), found[4].strip().splitlines()
    for line in sorted(set(theirs) - set(ours)):
        print(f"-{line}", file=sys.stderr)
    for line in sorted(set(ours) - set(theirs)):
        print(f"+{line}", file=sys.stderr)
    print(f"gpu_static.py: {path}: its table of kernels is another; ci/gpu-static.sh --update writes this one into it",
          file=sys.stderr)
    return False


def write_json(path, rows, tools):
    document = {
        "clang": run([tools.clang, "--version"]).splitlines()[0],
        "ptxas": run([tools.ptxas, "--version"]).splitlines()[-1],
        "least_occupancy": LEAST_OCCUPANCY,
        "kernels": [{**dataclasses.asdict(row), "occupancy": row.occupancy} for row in rows],
    }
    with open(path, "w", encoding="utf-8") as out:
        json.dump(document, out, indent=2)
        out.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("launches", "kernels", "clang", "clc", "ptxas"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--json")
    parser.add_argument("--document", required=True)
    parser.add_argument("--update", action="store_true")
    tools = parser.parse_args()

    programs = read_programs(tools.launches)
    work = [(program, target) for program in programs for target in TARGETS]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        compiled = list(pool.map(lambda pair: compile_program(*pair, tools), work))
    order = {(program.label, target.name): i for i, (program, target) in enumerate(work)}
    rows = sorted((row for part in compiled for row in part),
                  key=lambda row: (row.settings != "", row.kernel.split("_")[0], row.kernel, order[row.settings, row.target]))
    rows = without_twins(rows)
    for row in rows:
        judge(row)

    print_text(rows)
    documented = check_document(tools.document, rows, tools, tools.update)
    if tools.json:
        write_json(tools.json, rows, tools)
    missing = kernels_of(tools.kernels) - {row.kernel for row in rows} - launched_on_cpus(tools.launches)
    for kernel in sorted(missing):
        print(f"gpu_static.py: nothing launches {kernel}: have ci/gpu-static.sh train with what needs it", file=sys.stderr)
    faults = [row for row in rows if row.faults]
    for row in faults:
        print(f"gpu_static.py: {row.kernel} {row.settings} on {row.target}: {', '.join(row.faults)}", file=sys.stderr)
    return 1 if missing or faults or not documented else 0


if __name__ == "__main__":
    sys.exit(main())
