package describe

import (
	"net/url"
	"strconv"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
)

// operations are what can be done with one app.
type operations struct {
	*serving.App
	shape    shape
	needsKey bool // though others do not
}

// refusals are what each operation may answer besides 200 and 400.
const refusals = `,"401":{"$ref":"#/components/responses/Unauthorized"},"403":{"$ref":"#/components/responses/Forbidden"}` +
	`,"404":{"$ref":"#/components/responses/NotFound"},"408":{"$ref":"#/components/responses/TooSlow"}` +
	`,"413":{"$ref":"#/components/responses/TooLarge"},"415":{"$ref":"#/components/responses/UnknownEncoding"}` +
	`,"429":{"$ref":"#/components/responses/TooMany"},"431":{"$ref":"#/components/responses/HeadersTooLarge"}` +
	`,"500":{"$ref":"#/components/responses/Failed"},"503":{"$ref":"#/components/responses/Unavailable"}}}},`

const (
	predictParameters = `,"parameters":[{"$ref":"#/components/parameters/Timeout"},{"$ref":"#/components/parameters/Priority"},{"$ref":"#/components/parameters/RequestId"},{"$ref":"#/components/parameters/Timing"}]`
	updateParameters  = `,"parameters":[{"$ref":"#/components/parameters/Timeout"},{"$ref":"#/components/parameters/RequestId"}]`
	predictAnswers    = `,"responses":{"200":{"$ref":"#/components/responses/Answer"},"400":{"$ref":"#/components/responses/BadRequest"}` + refusals
	updateAnswers     = `,"responses":{"200":{"$ref":"#/components/responses/Received"},"400":{"$ref":"#/components/responses/BadFeedback"}` + refusals
)

// appendPredict appends the path of queries, and a comma.
func (o *operations) appendPredict(b []byte) []byte {
	b = o.appendHead(b, "predict", "Ask "+o.Name)
	b = codec.AppendString(append(b, `,"description":`...), o.description())
	b = append(b, predictParameters...)
	b = append(b, `,"requestBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/components/schemas/`...)
	b = append(o.shape.appendName(b), `Request"}`...)
	if example := o.example(); example != nil {
		b = append(append(append(b, `,"example":{"input":`...), example...), '}')
	}
	return append(append(b, `}}}`...), predictAnswers...)
}

// appendUpdate appends the path of feedback, and a comma.
func (o *operations) appendUpdate(b []byte) []byte {
	b = o.appendHead(b, "update", "Tell how good an answer of "+o.Name+" was")
	b = append(b, updateParameters...)
	b = append(b, `,"requestBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/components/schemas/`...)
	b = append(o.shape.appendName(b), `Update"}}}}`...)
	return append(b, updateAnswers...)
}

// appendHead appends what an operation begins with: its path, its id and the keys that it accepts.
func (o *operations) appendHead(b []byte, what, summary string) []byte {
	b = codec.AppendString(b, "/"+url.PathEscape(o.Name)+"/"+what)
	b = codec.AppendString(append(b, `:{"post":{"operationId":`...), what+"_"+o.Name)
	b = codec.AppendString(append(b, `,"summary":`...), summary)
	if o.needsKey {
		b = append(b, `,"security":[`+keyed+`]`...)
	}
	return b
}

// description is the app's own, and how it answers.
func (o *operations) description() string {
	text := "Answers within " + o.SLO.Std().String()
	if o.ColdStart > o.SLO {
		text += ", or within " + o.ColdStart.Std().String() + " while no replica is ready"
	}
	if n := len(o.Stages); n > 0 {
		text += ", by asking " + strconv.Itoa(n) + " models one after another."
	} else {
		text += ". Its policy is `" + o.Policy.KindName() + "`."
	}
	if o.Description == "" {
		return text
	}
	return o.Description + "\n\n" + text
}
