package serving

import (
	"encoding/json"
	"errors"
	"fmt"
)

// JSON is the form that ParsePipeline reads, and that containers get in the variable
// TOPSAIL_STAGES. Jobs compare the text, and so the order counts, too.
func (p Pipeline) JSON() string {
	text, _ := json.Marshal(p) // of texts and numbers: this cannot fail
	return string(text)
}

// ParsePipeline reads the JSON form, which containers announce, and checks it.
// Fields that it does not know are skipped: a newer container may have more.
func ParsePipeline(b []byte) (Pipeline, error) {
	var p Pipeline
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, fmt.Errorf("the pipeline is not a JSON list of stages: %w", err)
	}
	if len(p) == 0 {
		return nil, errors.New("the pipeline has no stages")
	}
	return p, p.Check()
}

// JSON is the form that ParseSignature reads, and that containers are told in the variable
// TOPSAIL_SIGNATURE; empty for none.
func (s *Signature) JSON() string {
	if s == nil {
		return ""
	}
	text, _ := json.Marshal(s) // of texts and numbers: this cannot fail
	return string(text)
}

// ParseSignature reads the JSON form and checks it; an empty text is no signature.
func ParseSignature(text []byte) (*Signature, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var s Signature
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("the signature is not what JSON makes of one: %w", err)
	}
	return &s, s.Check()
}

// SidecarJSON is the form that ParseSidecarVersions reads, and that the sidecar of the version
// gets as sidecar.models. It has what a sidecar needs to know: neither what makes the container,
// least of all the secrets, nor what may change while it runs.
func (v *Version) SidecarJSON() string {
	told := Version{
		ModelID: v.ModelID, Generation: v.Generation, InputType: v.InputType, InputLength: v.InputLength, Signature: v.Signature,
		Batch: v.Batch, Host: v.Host, HostedBy: v.HostedBy, Prepared: v.Prepared,
		Container: Container{Addr: v.Container.Addr, Protocol: v.Container.Protocol, Connections: v.Container.Connections},
	}
	text, _ := json.Marshal([]Version{told}) // of texts and numbers: this cannot fail
	return string(text)
}

// ParseSidecarVersions reads the JSON form, and does not check it.
func ParseSidecarVersions(b []byte) (versions []*Version, err error) {
	var told []Version // no pointers, which could be null
	if err := json.Unmarshal(b, &told); err != nil {
		return nil, err
	}
	for i := range told {
		versions = append(versions, &told[i])
	}
	return versions, nil
}
