package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
)

// cores is the size of machine that the bars are for.
const cores = 2

// options are what the command line says.
type options struct {
	Runs            int `json:"runs"`
	Seconds         int `json:"seconds"`          // of each run; wrk knows whole seconds only
	OverloadSeconds int `json:"overload_seconds"` // of each open-loop run

	cases    []benchCase
	strict   bool
	json     string // files and a folder; empty: not wanted
	markdown string
	profiles string
	before   string // a build of an earlier commit

	role  string // of a process that another bench started
	setup setup
}

// benchCase is one group of figures.
type benchCase struct {
	name, about string
	measure     func(context.Context, *bench) ([]figure, error)
}

func allCases() []benchCase {
	return []benchCase{
		{"cached", "answers from the cache, against a bare route that reads and writes the same bodies", cached},
		{"path", "gateway, sidecar and a no-op container, without the cache, against the bare route", path},
		{"doors", "the protocols of a gateway, asked for the same", doors},
		{"mlserver", "images as binary data, against MLServer", mlserver},
		{"tensors", "images as binary data, against Triton, mosec and KServe, each with one process for the model", tensors},
		{"before", "POST /APP/predict, against a build of an earlier commit", before},
		{"parts", "a thousand answers in parts at a time, of 20 parts a second each", parts},
		{"batch", "a model that takes 2 ms for a batch of any size", batch},
		{"overload", "three times as many queries as can be answered, with a latency promise of 50 ms", overload},
		{"selection", "an app that asks several models for each query", selection},
		{"python", "a no-op container in Python, against the one in Go", python},
		{"stages", "a pipeline of two stages that keep a processor busy, against mosec and the functions one by one", stages},
		{"stream", "the same models over HTTP and as data streams in Redis and Kafka, the brokers on the same cores", streams},
		{"minority", "data streams of which one record in a hundred takes 2 s, with the defaults of a stream", minority},
		{"within", "data streams of an app that waits at most 100 ms for three models, of which one stalls", within},
		{"pace", "data streams over models that take 1, 10 and 100 ms for an input, with the defaults of a stream", pace},
		{"hosts", "2,000 small models in four replicas with room for a part of them, asked as their popularity has it", hosts},
		{"priority", "an app at 0.7 of what a model can do, beside a data stream that would take everything", priority},
		{"fair", "two apps that share one model, which cannot do all that they ask for", fair},
		{"prefer", "a good, slow model and a fast one, by policies, asked for up to three times what the good one can do", prefer},
		{"sizes", "inputs of very different sizes, up to one and a half times what the model can do", sizes},
		{"embedded", "a gateway called in process, without HTTP", embedded},
	}
}

func parseOptions(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	only := flags.String("only", "all", "cases to measure, separated by commas: "+caseNames())
	flags.IntVar(&o.Runs, "runs", 5, "runs of each variant; figures are medians over them")
	flags.IntVar(&o.Seconds, "seconds", 3, "`length` of a run")
	flags.IntVar(&o.OverloadSeconds, "overload-seconds", 30, "`length` of an overload run")
	flags.BoolVar(&o.strict, "strict", false, "exit with status 1 when a bar is missed")
	flags.StringVar(&o.json, "json", "", "write the report as JSON to this `file`")
	flags.StringVar(&o.markdown, "markdown", "", "write the tables as Markdown to this `file`")
	flags.StringVar(&o.profiles, "profile", "", "write CPU profiles of gateway and sidecar in the case path to this `folder`")
	flags.StringVar(&o.before, "before", "", "compare POST /APP/predict with this `program` in the case before: Topsail, built from an earlier commit")
	flags.StringVar(&o.role, "role", "", "run as one of the measured `processes`; for bench itself")
	config := flags.String("config", "{}", "what that process needs to know, as `JSON`")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if err := json.Unmarshal([]byte(*config), &o.setup); err != nil {
		return o, fmt.Errorf("-config: %w", err)
	}
	if o.Runs < 1 || o.Seconds < 1 || o.OverloadSeconds < 1 || flags.NArg() > 0 {
		return o, errors.New("-runs, -seconds and -overload-seconds must be at least 1, and there are no arguments besides flags")
	}
	var err error
	o.cases, err = chooseCases(*only)
	return o, err
}

// measuredWith are the cases that are measured with one that is named.
func measuredWith(name string) []string {
	if name == "doors" {
		return []string{"mlserver", "tensors", "before"}
	}
	return nil
}

// chooseCases finds cases by their names, and those that are measured with them, in the order in which they are listed.
func chooseCases(only string) ([]benchCase, error) {
	all := allCases()
	if only == "all" {
		return all, nil
	}
	wanted := strings.Split(only, ",")
	for _, name := range wanted {
		if !slices.ContainsFunc(all, func(c benchCase) bool { return c.name == name }) {
			return nil, fmt.Errorf("-only: there is no case %q: choose of all,%s", name, caseNames())
		}
	}
	for _, name := range wanted {
		wanted = append(wanted, measuredWith(name)...)
	}
	return slices.DeleteFunc(all, func(c benchCase) bool { return !slices.Contains(wanted, c.name) }), nil
}

func caseNames() string {
	var names []string
	for _, c := range allCases() {
		names = append(names, c.name)
	}
	return strings.Join(names, ",")
}
