package admin

import (
	"cmp"
	"math"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/web/api"
)

func replicaCommand() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List the replicas", Args: cobra.NoArgs}
	ofVersion(list)
	get := verb(takes("get REPLICA", "Show a replica, with what its sidecar has measured", replicaNames), func(k *call) error {
		return read(k, k.replicaTable, nil, "replicas", k.args[0])
	})
	logs := takes("logs REPLICA", "Print the output of a replica", replicaNames)
	logs.Long = "Print the output of a replica. " + goneLogs
	logFlags(logs)
	return noun(&cobra.Command{Use: "replica", Short: "Replicas: the processes that run versions"},
		verb(list, listReplicas), get,
		replicaVerb("restart", "Restart a replica's container", "%s restarts"),
		replicaVerb("drain", "Drain a replica: let it finish its queries, and replace it", "%s drains"),
		verb(logs, func(k *call) error { return k.logs([]api.Replica{{ID: k.args[0]}}) }))
}

// ofVersion narrows a list down.
func ofVersion(c *cobra.Command) {
	c.Flags().String("model", "", "of this model only")
	c.Flags().String("version", "", "of this version only")
}

func replicaVerb(name, short, done string) *cobra.Command {
	c := takes(name+" REPLICA", short, replicaNames)
	return verb(c, func(k *call) error {
		r := apiclient.Request{Method: http.MethodPost, Path: []string{"replicas", k.args[0], name}}
		return k.change(r, done, k.args[0])
	})
}

func listReplicas(k *call) error {
	replicas, raw, err := items[api.Replica](k, 0, k.parameters("model", "version"), "replicas")
	if err != nil {
		return err
	}
	return k.showList(raw, k.replicaRows(replicas), "there are no replicas: `topsail version list` shows which versions should have some")
}

func (k *call) replicaRows(replicas []api.Replica) *screen.Table {
	columns := []string{"REPLICA", "VERSION", "STATE", "SINCE", "QUEUE", "BATCH", "LATENCY", "RESTARTS", "REASON"}
	if k.wide() {
		columns = append(columns, "NODE", "ALLOCATION", "PID", "CPU", "MEMORY", "GPU", "ANSWERS")
	}
	t := screen.NewTable(columns...)
	for _, r := range replicas {
		row := []string{
			r.ID, r.Model + ":" + r.Version, r.State, screen.Ago(k.now, r.Since), count(r.QueueLength + r.InFlight),
			batchOf(r), screen.Micros(r.Latency), count(r.Restarts), r.Reason,
		}
		if k.wide() {
			row = append(row, r.Node, r.Allocation, process(r.PID), cores(r), memory(r.Memory), memory(r.GPUMemory), strconv.FormatUint(r.Answers, 10))
		} else {
			row[len(row)-1] = screen.Short(r.Reason, 60)
		}
		t.Row(row...)
	}
	return t
}

// process is empty for one that is not known.
func process(pid int) string {
	if pid == 0 {
		return ""
	}
	return count(pid)
}

// cores is how many a replica uses; empty where that is not known.
func cores(r api.Replica) string {
	if r.Memory == 0 {
		return ""
	}
	return screen.Number(math.Round(r.CPU*100)/100) + " cores"
}

func memory(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return screen.Bytes(bytes)
}

func count(n int) string { return strconv.Itoa(n) }

// batchOf is the mean size of batches and what they may have.
func batchOf(r api.Replica) string {
	if r.BatchLimit == 0 {
		return ""
	}
	return screen.Number(r.BatchMean) + "/" + strconv.Itoa(r.BatchLimit)
}

func (k *call) replicaTable(r api.Replica) *screen.Table {
	t := screen.NewTable()
	t.Row("replica", r.ID)
	t.Row("version", r.Model+":"+r.Version)
	t.Row("state", r.State)
	t.Row("reason", r.Reason)
	t.Row("node", r.Node)
	t.Row("allocation", r.Allocation)
	t.Row("process", process(r.PID))
	t.Row("CPU", cores(r))
	t.Row("memory", memory(r.Memory))
	t.Row("GPU memory", memory(r.GPUMemory))
	t.Row("started", screen.Ago(k.now, r.Since))
	t.Row("restarts", count(r.Restarts))
	t.Row("answers", strconv.FormatUint(r.Answers, 10))
	t.Row("in flight", count(r.InFlight))
	t.Row("queue", count(r.QueueLength))
	t.Row("wait", screen.Micros(r.Wait))
	t.Row("latency", screen.Micros(r.Latency))
	t.Row("batches", batchOf(r))
	for _, s := range r.Stages {
		t.Row("stage "+s.Stage, replicaStage(s))
	}
	for _, p := range r.Profile {
		t.Row("batch of "+strconv.Itoa(p.Size), screen.Micros(p.Micros))
	}
	return t
}

// replicaStage is a stage of one replica in the last minute.
func replicaStage(s api.StageTraffic) string {
	text := workers(s) + " workers ready, " + count(s.Waiting) + " waiting"
	if s.Rate != nil {
		text += ", " + perSecond(*s.Rate)
	}
	if s.Wait != nil && s.Run != nil {
		text += ", wait " + cmp.Or(micros(*s.Wait), "0") + ", run " + cmp.Or(micros(*s.Run), "0")
	}
	if bad := notOK(s.Ended); bad != "" {
		text += ", " + bad
	}
	return text
}
