package sidecar

import (
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// checkOutputs makes an error of the model of an answer that is not what the version's signature
// says. parts says that parts came before it.
func (p *pool) checkOutputs(a *rpc.Answer, parts bool) {
	outputs := p.model.Signature.OutputTensors()
	if len(outputs) == 0 || a.Status != rpc.StatusOK {
		return
	}
	values, err := rpc.ParsePayload(a.Payload)
	if err == nil && len(values) == 0 && parts {
		return // the whole was not collected
	}
	if err == nil {
		if len(outputs) == 1 && len(values) == 1 && values[0].Name == "" {
			values[0].Name = outputs[0].Name // of one output the name goes without saying
			a.Payload = rpc.AppendPayload(nil, values...)
		}
		err = serving.FitAll(outputs, values)
	}
	if err != nil {
		*a = rpc.Answer{Index: a.Index, More: a.More, Status: rpc.StatusModelError, Stages: a.Stages, Message: []byte("the outputs are not those of the signature: " + err.Error())}
	}
}
