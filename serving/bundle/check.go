package bundle

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

const (
	maxRequirements = 200
	maxOptions      = 100
	maxText         = 4096 // bytes of one argument, option or requirement
	maxArguments    = 100
)

// The runtimes that have no Python.
const (
	CommandRuntime = "command" // the bundle's own command
	PMMLRuntime    = "pmml"    // Topsail's program in Java, which evaluates PMML models
)

// LoRARuntime is an adapter of a language model, which an engine loads that is a host.
const LoRARuntime = "lora"

// AdapterOption is the option of the runtime "lora" for what the engine has loaded itself: its name there.
const AdapterOption = "adapter"

// HostRuntime is Topsail's program in Python that holds other bundles.
const HostRuntime = "host"

// HeapOption is the option of the runtime "pmml" for the memory that Java may take for
// the model, such as "512m".
const HeapOption = "heap"

var (
	pythonMinor = regexp.MustCompile(`^3\.(0|[1-9][0-9]?)$`)
	heapSize    = regexp.MustCompile(`^[1-9][0-9]{0,4}[mg]$`)
	callable    = regexp.MustCompile(`^[\pL_][\pL\pN_]*(\.[\pL_][\pL\pN_]*)*:[\pL_][\pL\pN_]*(\.[\pL_][\pL\pN_]*)*$`)
)

// Check returns everything that is wrong with the manifest alone, or nil.
func (m *Manifest) Check() error {
	errs := []error{m.checkRuntime(), m.checkInput(), m.checkOptions()}
	for _, line := range m.Requirements {
		errs = append(errs, checkRequirement(line))
	}
	if n := len(m.Requirements); n > maxRequirements {
		errs = append(errs, fmt.Errorf("there are %d requirements; at most %d are allowed", n, maxRequirements))
	}
	return errors.Join(errs...)
}

func (m *Manifest) checkRuntime() error {
	switch m.Runtime {
	case "python", "sklearn", "onnx", "torch", "tensorflow", "xgboost", "lightgbm", "r", "pyspark":
		return errors.Join(m.checkPythonField(), m.checkEntry(), m.checkNoCommand())
	case PMMLRuntime:
		return errors.Join(m.checkPMML(), m.checkNoCommand())
	case HostRuntime:
		return errors.Join(m.checkPythonField(), m.checkHost(), m.checkNoCommand())
	case CommandRuntime:
		return m.checkCommand()
	case LoRARuntime:
		return errors.Join(m.checkLoRA(), m.checkNoCommand())
	}
	return fmt.Errorf("runtime %q is unknown: use python, sklearn, onnx, torch, tensorflow, xgboost, lightgbm, r, pyspark, pmml, lora, host or command", m.Runtime)
}

func (m *Manifest) checkLoRA() error {
	switch own := m.Options[AdapterOption]; {
	case m.Python != "" || len(m.Requirements) > 0:
		return fmt.Errorf("python and requirements are for runtimes in Python, and runtime %q is run by an engine", LoRARuntime)
	case own != "" && m.Entry != "":
		return fmt.Errorf("option %s names what the engine has loaded itself: leave entry out", AdapterOption)
	case own == "" && !m.holds(m.Entry):
		return fmt.Errorf("entry %q is not a folder of the bundle: runtime %q needs that of the adapter, or option %s with the name of what the engine has", m.Entry, LoRARuntime, AdapterOption)
	}
	return nil
}

func (m *Manifest) checkPMML() error {
	if m.Python != "" || len(m.Requirements) > 0 {
		return fmt.Errorf("python and requirements are for runtimes in Python, and runtime %q is a program in Java", PMMLRuntime)
	}
	if _, ok := m.Files[m.Entry]; !ok {
		return fmt.Errorf("entry %q is not a file of the bundle: runtime %q needs the model's file, such as \"model.pmml\"", m.Entry, PMMLRuntime)
	}
	if heap, ok := m.Options[HeapOption]; ok && !heapSize.MatchString(heap) {
		return fmt.Errorf("option %s is %q: write Java's memory in megabytes or gigabytes, such as \"512m\" or \"2g\"", HeapOption, heap)
	}
	return nil
}

func (m *Manifest) checkHost() error {
	if m.Entry != "" || m.InputType != 0 || len(m.Options) > 0 {
		return fmt.Errorf("entry, input_type and options are for models, and runtime %q loads those of other bundles", HostRuntime)
	}
	return nil
}

func (m *Manifest) checkPythonField() error {
	if !pythonMinor.MatchString(m.Python) {
		return fmt.Errorf("python is %q: runtime %q needs the version that the model was built with, as MAJOR.MINOR, such as \"3.11\"",
			m.Python, m.Runtime)
	}
	if minorNumber(m.Python) < OldestMinor {
		return fmt.Errorf("python is %q, and Topsail's runtime needs 3.%d or later: build the model with a later one", m.Python, OldestMinor)
	}
	return nil
}

func (m *Manifest) checkEntry() error {
	switch {
	case m.Entry == "":
		return fmt.Errorf("entry is missing: runtime %q needs a file of the bundle, or module:callable", m.Runtime)
	case m.holds(m.Entry) || callable.MatchString(m.Entry):
		return nil
	}
	return fmt.Errorf("entry %q is neither a file or folder of the bundle nor module:callable", m.Entry)
}

// holds says whether a file or a folder of this name is in the bundle.
func (m *Manifest) holds(name string) bool {
	if _, ok := m.Files[name]; ok {
		return true
	}
	for file := range maps.Keys(m.Files) {
		if strings.HasPrefix(file, strings.TrimSuffix(name, "/")+"/") {
			return true
		}
	}
	return false
}

func (m *Manifest) checkNoCommand() error {
	if len(m.Command) > 0 {
		return fmt.Errorf("command is for runtime %q, and this is %q", CommandRuntime, m.Runtime)
	}
	return nil
}

func (m *Manifest) checkCommand() error {
	switch {
	case m.Python != "" || len(m.Requirements) > 0 || m.Entry != "":
		return fmt.Errorf("python, requirements and entry are for runtimes in Python, and runtime %q has only its command", CommandRuntime)
	case len(m.Command) == 0 || m.Command[0] == "":
		return fmt.Errorf("command is missing: runtime %q needs the program and its arguments", CommandRuntime)
	case len(m.Command) > maxArguments:
		return fmt.Errorf("command has %d arguments; at most %d are allowed", len(m.Command), maxArguments)
	case strings.HasPrefix(m.Command[0], "/"):
		return nil // a program of the node
	}
	for _, argument := range m.Command {
		if len(argument) > maxText || strings.ContainsRune(argument, 0) {
			return fmt.Errorf("command has an argument of more than %d bytes, or with a byte 0", maxText)
		}
	}
	if name, ok := m.Program(); ok {
		if _, there := m.Files[name]; !there {
			return fmt.Errorf("command runs %q, which the bundle does not contain", m.Command[0])
		}
	}
	return nil
}

// Program is the file of the bundle that the command runs. There is none where the
// command names a program of the node, by its name or its whole path.
func (m *Manifest) Program() (name string, ok bool) {
	if len(m.Command) == 0 || strings.HasPrefix(m.Command[0], "/") || !strings.Contains(m.Command[0], "/") {
		return "", false
	}
	return strings.TrimPrefix(m.Command[0], "./"), true
}

func (m *Manifest) checkInput() error {
	if err := m.Signature.Check(); err != nil {
		return err
	}
	if m.InputType == serving.Tensors && len(m.Signature.InputTensors()) == 0 {
		return errors.New("input_type \"tensors\" needs a signature with inputs")
	}
	if m.InputLength < 0 || m.InputLength > 0 && m.InputType.Text() {
		return errors.New("input_length must be positive, and is for vectors only")
	}
	if len(m.Example) == 0 || m.InputType == 0 || m.InputType == serving.Tensors {
		return nil
	}
	if err := checkExample(m.Example, m.InputType, m.InputLength); err != nil {
		return fmt.Errorf("example is not an input of this model: %w", err)
	}
	return nil
}

func (m *Manifest) checkOptions() error {
	if len(m.Options) > maxOptions {
		return fmt.Errorf("there are %d options; at most %d are allowed", len(m.Options), maxOptions)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Options)) {
		if name == "" || len(name) > maxText || len(m.Options[name]) > maxText {
			return fmt.Errorf("option %.40q: its name or value is too long, or it has no name", name)
		}
	}
	return nil
}
