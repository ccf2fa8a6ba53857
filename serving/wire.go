package serving

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Containers and sidecars of other releases read what is in this file, so its names stay as the
// first release has them, with times in nanoseconds.

// wireBatch is a BatchSpec.
type wireBatch struct {
	Strategy string        `json:"strategy,omitempty"`
	MaxSize  int           `json:"max_size,omitempty"`
	Delay    time.Duration `json:"delay,omitempty"`
	Pad      bool          `json:"pad,omitempty"`
}

func wireBatchOf(b BatchSpec) wireBatch {
	return wireBatch{b.Strategy, b.MaxSize, b.Delay.Std(), b.Pad}
}

func (w wireBatch) spec() BatchSpec {
	return BatchSpec{w.Strategy, w.MaxSize, Duration(w.Delay), w.Pad}
}

// wireStage is a Stage. Jobs compare the text, and so the order counts, too.
type wireStage struct {
	Stage
	Batch      wireBatch `json:"batch,omitzero"`
	Idempotent bool      `json:"idempotent,omitempty"`
}

// JSON is the form that ParsePipeline reads, and that containers get in the variable
// TOPSAIL_STAGES.
func (p Pipeline) JSON() string {
	wire := make([]wireStage, len(p))
	for i, s := range p {
		wire[i] = wireStage{s, wireBatchOf(BatchSpec(s.Batch)), s.Idempotent}
	}
	text, _ := json.Marshal(wire) // of texts and numbers: this cannot fail
	return string(text)
}

// ParsePipeline reads the JSON form, which containers announce, and checks it.
// Fields that it does not know are skipped: a newer container may have more.
func ParsePipeline(b []byte) (Pipeline, error) {
	var wire []wireStage
	if err := json.Unmarshal(b, &wire); err != nil {
		return nil, fmt.Errorf("the pipeline is not a JSON list of stages: %w", err)
	}
	var p Pipeline
	for _, w := range wire {
		w.Stage.Batch, w.Stage.Idempotent = StageBatch(w.Batch.spec()), w.Idempotent
		p = append(p, w.Stage)
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

// wireVersion is what a sidecar needs to know of a Version: neither what makes its container,
// least of all the secrets, nor what may change while it runs.
type wireVersion struct {
	ModelID
	Generation  string     `json:"generation,omitempty"`
	InputType   InputType  `json:"input_type,omitzero"`
	InputLength int        `json:"input_length,omitempty"`
	Signature   *Signature `json:"signature,omitempty"`
	Replicas    int        `json:"replicas"` // always 0
	Batch       wireBatch  `json:"batch"`
	Container   struct {
		Addr        string `json:"addr,omitempty"`
		Protocol    string `json:"protocol,omitempty"`
		Connections int    `json:"connections,omitempty"`
	} `json:"container"`
	Host     *HostSpec `json:"host,omitempty"`
	HostedBy string    `json:"hosted_by,omitempty"`
	Prepared bool      `json:"prepared,omitempty"`
	Origin   Origin    `json:"origin"` // always empty
}

// SidecarJSON is the form that ParseSidecarVersions reads, and that the sidecar of the version
// gets as sidecar.models.
func (v *Version) SidecarJSON() string {
	w := wireVersion{
		ModelID: v.ModelID, Generation: v.Generation, InputType: v.InputType, InputLength: v.InputLength, Signature: v.Signature,
		Batch: wireBatchOf(v.Batch), Host: v.Host, HostedBy: v.HostedBy, Prepared: v.Prepared,
	}
	w.Container.Addr, w.Container.Protocol, w.Container.Connections = v.Container.Addr, v.Container.Protocol, v.Container.Connections
	text, _ := json.Marshal([]wireVersion{w}) // of texts and numbers: this cannot fail
	return string(text)
}

// ParseSidecarVersions reads the JSON form, and does not check it.
func ParseSidecarVersions(b []byte) ([]*Version, error) {
	var wire []wireVersion
	if err := json.Unmarshal(b, &wire); err != nil {
		return nil, err
	}
	versions := make([]*Version, len(wire))
	for i, w := range wire {
		versions[i] = &Version{
			ModelID: w.ModelID, Generation: w.Generation, InputType: w.InputType, InputLength: w.InputLength, Signature: w.Signature,
			Batch: w.Batch.spec(), Host: w.Host, HostedBy: w.HostedBy, Prepared: w.Prepared,
			Container: Container{Addr: w.Container.Addr, Protocol: w.Container.Protocol, Connections: w.Container.Connections},
		}
	}
	return versions, nil
}
