package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// ticks is how many units of CPU time /proc has in a second, on every Linux that Go runs on.
const ticks = 100

// Usages is what commands use now, by the process id of each. Those that have ended are left out.
func Usages(commands []int) map[int]Usage {
	own, children := map[int]Usage{}, map[int][]int{}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		if stat, err := os.ReadFile(path); err == nil { // else it has ended
			if pid, parent, usage := parseUsage(stat); pid != 0 {
				own[pid] = usage
				children[parent] = append(children[parent], pid)
			}
		}
	}
	all := make(map[int]Usage, len(commands))
	for _, command := range commands {
		if _, there := own[command]; !there {
			continue
		}
		var sum Usage
		for next := []int{command}; len(next) > 0; next = next[1:] {
			sum.CPU += own[next[0]].CPU
			sum.Memory += own[next[0]].Memory
			sum.Processes = append(sum.Processes, next[0])
			next = append(next, children[next[0]]...)
		}
		all[command] = sum
	}
	return all
}

// parseUsage reads a process's stat, see proc_pid_stat(5); 0 is none.
func parseUsage(stat []byte) (pid, parent int, u Usage) {
	first, _, _ := bytes.Cut(stat, []byte(" "))
	nameEnd := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[nameEnd+1:])
	if nameEnd < 0 || len(fields) < 22 {
		return 0, 0, Usage{}
	}
	number := func(field int) int64 { // as the manual counts them: the state is the third
		n, _ := strconv.ParseInt(string(fields[field-3]), 10, 64)
		return n
	}
	pid, _ = strconv.Atoi(string(first))
	const parentField, timeFields, residentField = 4, 14, 24
	for i := range 4 { // its own time in user mode and in the kernel, and that of children it waited for
		u.CPU += time.Duration(number(timeFields+i)) * time.Second / ticks
	}
	u.Memory = number(residentField) * int64(os.Getpagesize())
	return pid, int(number(parentField)), u
}
