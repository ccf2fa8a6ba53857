package models

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// Model describes a version of a model that is to be deployed.
type Model struct {
	Name        string
	Version     string
	Description string
	InputType   string // by its name; empty: the bundle says it
	InputLength uint32 // elements of every input; 0: any
	Kind        string

	Data     []byte // the model itself, or
	Location string // the URL where it is
	SHA256   string // of it, in hexadecimal; needed with a location
	Archive  bool   // it is a zip archive of the model's files
	// A location needs no checksum, and may be a folder where the model is an archive: whatever is there is the version.
	anyContent bool

	Python       string // such as "3.11"
	Requirements []string
	Entry        string // a file or folder of the model, or module:callable
	Options      map[string]string
	Command      []string
	Example      string // an input, as JSON

	Apps        []string // are to ask the model from now on
	KeepCurrent bool     // register the version, and leave the current one
	HostedBy    string   // the host whose replicas hold the version; empty: as of the version that it replaces

	// What else the version has: members of a version as the management API names them, such as
	// {"replicas": 8}, as a merge patch of the version that it replaces.
	Settings json.RawMessage
}

// mostNames bounds the apps that a model names, and the models of an ensemble.
const mostNames = 1000

var checksum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// check says everything that is wrong with the model by itself, or nil; its kind aside.
func (m *Model) check() error {
	errs := []error{serving.CheckModelName(m.Name), serving.CheckVersion(m.Version)}
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if m.InputType != "" {
		if _, err := serving.ParseInputType(m.InputType); err != nil {
			errs = append(errs, err)
		}
	}
	if m.HostedBy != "" {
		errs = append(errs, serving.CheckModelName(m.HostedBy))
	}
	if len(m.Apps) > mostNames {
		wrong("it names %d apps, and may name %d", len(m.Apps), mostNames)
	}
	for _, app := range m.Apps[:min(len(m.Apps), mostNames)] {
		errs = append(errs, serving.CheckAppName(app))
	}
	switch {
	case len(m.Data) == 0 && m.Location == "":
		wrong("give data, the model itself, or location, the URL where it is")
	case len(m.Data) > 0 && m.Location != "":
		wrong("give data or location, and not both")
	case m.Location != "" && m.SHA256 == "" && !m.anyContent:
		wrong("what is at a location needs its sha256: something else may be there by the time that it is fetched")
	}
	if m.SHA256 != "" && !checksum.MatchString(m.SHA256) {
		wrong("sha256 must be 64 hexadecimal digits in lower case")
	}
	for _, label := range texts(members(m.Settings)["labels"]) {
		if new(origin).parse(label) {
			wrong("label %.100q is one that says which update a version was made by: use another", label)
		}
	}
	if m.Example != "" && !json.Valid([]byte(m.Example)) {
		wrong("example must be an input as JSON")
	}
	return errors.Join(errs...)
}

// sum is the checksum of the model itself, or of where it is.
func (m *Model) sum() string {
	if m.SHA256 != "" {
		return m.SHA256
	}
	sum := sha256.Sum256(append([]byte(m.Location), m.Data...))
	return hex.EncodeToString(sum[:])
}

// content is a checksum of all that makes the version what it is: two descriptors of one
// content make the same version, wherever the model itself comes from. It does not depend
// on how bundles are packed.
func (m *Model) content() string {
	h := sha256.New()
	add := func(texts ...string) {
		fmt.Fprintf(h, "%d;", len(texts))
		for _, text := range texts {
			fmt.Fprintf(h, "%d:%s", len(text), text)
		}
	}
	inputType := m.InputType
	if t, err := serving.ParseInputType(inputType); err == nil {
		inputType = t.String() // it has several names
	}
	add(m.Kind, m.sum(), fmt.Sprint(m.Archive), inputType, fmt.Sprint(m.InputLength), m.Python, m.Entry, m.Example, m.HostedBy)
	add(m.Requirements...)
	add(m.Command...)
	for _, name := range slices.Sorted(maps.Keys(m.Options)) {
		add(name, m.Options[name])
	}
	if len(m.Settings) > 0 {
		add("settings", string(m.Settings), "") // no option has three
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}

// unchecked says where the bytes of the model are not those that the checksum is of, or nil.
func (m *Model) unchecked(sum string) error {
	if m.SHA256 == "" || sum == m.SHA256 {
		return nil
	}
	return fmt.Errorf("the checksum of the model is %s…, and sha256 says %s…: it was damaged or exchanged on its way", short(sum), short(m.SHA256))
}

func short(sum string) string { return sum[:min(12, len(sum))] }

// summary is the description of the version.
func (m *Model) summary() string { return strings.TrimSpace(m.Description) }
