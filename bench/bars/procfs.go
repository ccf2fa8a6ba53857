package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// tick is the unit of processor times in /proc: Linux shows every program 100 a
// second, whatever it counts in.
const tick = time.Second / 100

// cpuTime is the processor time that a process has used, with all its threads.
func cpuTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(stat)
}

// cpuTimeOfAll is the processor time that a process and all that are below it now have used.
func cpuTimeOfAll(root int) (sum time.Duration, err error) {
	pids, err := descendants(root, "")
	if err == nil && !slices.Contains(pids, root) {
		err = fmt.Errorf("process %d has ended", root)
	}
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		used, err := cpuTime(pid)
		switch {
		case err == nil:
			sum += used
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH): // others may have ended just now
			return 0, err
		}
	}
	return sum, nil
}

// resident is the memory of a process that is in RAM, in bytes.
func resident(pid int) (int64, error) {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	pages, err := parseStatm(statm)
	return pages * int64(os.Getpagesize()), err
}

// parseStat adds user and system time in "pid (name) state ...": the fields 14
// and 15, and the name, which may hold anything, is field 2.
func parseStat(stat []byte) (time.Duration, error) {
	nameEnd := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[nameEnd+1:]) // from field 3 on
	if nameEnd < 0 || len(fields) < 13 {
		return 0, fmt.Errorf("/proc/PID/stat reads %q", stat)
	}
	user, err := strconv.ParseInt(string(fields[11]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/PID/stat: user time: %w", err)
	}
	system, err := strconv.ParseInt(string(fields[12]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/PID/stat: system time: %w", err)
	}
	return time.Duration(user+system) * tick, nil
}

// parseStatm finds the resident pages in "size resident shared ...".
func parseStatm(statm []byte) (pages int64, err error) {
	fields := bytes.Fields(statm)
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/PID/statm reads %q", statm)
	}
	if pages, err = strconv.ParseInt(string(fields[1]), 10, 64); err != nil {
		return 0, fmt.Errorf("/proc/PID/statm: resident: %w", err)
	}
	return pages, nil
}
