package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"runtime"
)

// machine says where the figures come from.
type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
}

func thisMachine() machine {
	// A machine that does not say what it is stays unknown.
	info, _ := os.ReadFile("/proc/cpuinfo")
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return machine{
		CPU:    cmp.Or(cpuModel(info), runtime.GOARCH),
		Cores:  runtime.NumCPU(),
		Kernel: cmp.Or(string(bytes.TrimSpace(kernel)), runtime.GOOS),
		Go:     runtime.Version(),
	}
}

// cpuModel finds the first processor's name in /proc/cpuinfo.
func cpuModel(info []byte) string {
	_, rest, _ := bytes.Cut(info, []byte("model name"))
	_, rest, _ = bytes.Cut(rest, []byte(":"))
	name, _, _ := bytes.Cut(rest, []byte("\n"))
	return string(bytes.TrimSpace(name))
}

func (m machine) String() string {
	return fmt.Sprintf("%s, %d cores, Linux %s, %s", m.CPU, m.Cores, m.Kernel, m.Go)
}
