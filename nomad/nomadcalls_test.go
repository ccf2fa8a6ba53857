//go:build servers

package nomad

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
)

func listJobs(namespace string) func(role) error {
	return func(as role) error {
		jobs, _, err := as.nomad.Jobs().List(&nomadapi.QueryOptions{Namespace: namespace, Prefix: "topsail-"})
		if err == nil && len(jobs) == 0 {
			err = errors.New("there are none")
		}
		return err
	}
}

// followEvents waits for the first answer, which Nomad gives at once.
func followEvents(topics ...nomadapi.Topic) func(role) error {
	return func(as role) error {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		wanted := map[nomadapi.Topic][]string{}
		for _, topic := range topics {
			wanted[topic] = []string{"*"}
		}
		_, err := as.nomad.EventStream().Stream(ctx, wanted, 0, &nomadapi.QueryOptions{})
		return err
	}
}

// idle is a job without allocations.
func idle(id, namespace string) *nomadapi.Job {
	job := nomadapi.NewServiceJob(id, id, "global", 50)
	job.Namespace = &namespace
	task := nomadapi.NewTask("idle", "raw_exec").SetConfig("command", "sleep").SetConfig("args", []string{"60"})
	return job.AddDatacenter("*").AddTaskGroup(nomadapi.NewTaskGroup("idle", 0).AddTask(task))
}

// runModel does with a job what a scheduler does from the first query to the last.
func runModel(as role) error {
	const id = "topsail-wine-00000000"
	jobs := as.nomad.Jobs()
	_, _, checking := jobs.Validate(idle(id, namespace), nil)
	registered, _, err := jobs.RegisterOpts(idle(id, namespace), &nomadapi.RegisterOptions{EnforceIndex: true}, nil)
	if err != nil {
		return errors.Join(checking, err)
	}
	_, _, scaling := jobs.ScaleWithRequest(id, &nomadapi.ScalingRequest{
		Count: new(int64(0)), Target: map[string]string{"Job": id, "Group": "idle"}, JobModifyIndex: registered.JobModifyIndex,
	}, nil)
	_, _, stopping := jobs.Deregister(id, true, nil)
	return errors.Join(checking, scaling, stopping)
}

func readJob(as role) error {
	jobs := as.nomad.Jobs()
	_, _, reading := jobs.Info("topsail-web", nil)
	_, _, counting := jobs.Summary("topsail-web", nil)
	_, _, evaluating := jobs.Evaluations("topsail-web", nil)
	_, _, deploying := jobs.LatestDeployment("topsail-web", nil)
	allocs, _, err := jobs.Allocations("topsail-web", false, nil)
	if err == nil && len(allocs) == 0 {
		err = errors.New("no allocation is to be seen")
	}
	return errors.Join(reading, counting, evaluating, deploying, err)
}

func registerJob(namespace string) func(role) error {
	return func(as role) error {
		_, _, err := as.nomad.Jobs().Register(idle("ledger", namespace), &nomadapi.WriteOptions{Namespace: namespace})
		return err
	}
}

func scaleJob(as role) error {
	_, _, err := as.nomad.Jobs().Scale("ledger", "idle", new(0), "", false, nil, nil)
	return err
}

func stopJob(namespace string) func(role) error {
	return func(as role) error {
		_, _, err := as.nomad.Jobs().Deregister("ledger", false, &nomadapi.WriteOptions{Namespace: namespace})
		return err
	}
}

func listNodes(as role) error {
	nodes, _, err := as.nomad.Nodes().List(nil)
	if err == nil && len(nodes) == 0 {
		err = errors.New("there are none")
	}
	return err
}

// allocation is one of the web job.
func allocation(as role) (*nomadapi.Allocation, error) {
	allocs, _, err := as.nomad.Jobs().Allocations("topsail-web", false, nil)
	if err != nil || len(allocs) == 0 {
		return nil, fmt.Errorf("%d allocations are to be seen: %w", len(allocs), err)
	}
	alloc, _, err := as.nomad.Allocations().Info(allocs[0].ID, nil)
	return alloc, err
}

func readLogs(as role) error {
	alloc, err := allocation(as)
	if err != nil {
		return err
	}
	cancel := make(chan struct{})
	defer close(cancel)
	frames, errs := as.nomad.AllocFS().Logs(alloc, false, "web", "stdout", "start", 0, cancel, nil)
	select {
	case frame, ok := <-frames:
		if !ok || !strings.Contains(string(frame.Data), "listening on") {
			return fmt.Errorf("the logs are %v", frame)
		}
		return nil
	case err := <-errs:
		return err
	}
}

func restart(as role) error {
	alloc, err := allocation(as)
	if err != nil {
		return err
	}
	return as.nomad.Allocations().Restart(alloc, "", nil)
}

func readVariable(as role) error {
	_, _, err := as.nomad.Variables().Read("nomad/jobs/ledger", nil)
	return err
}

func makeToken(as role) error {
	_, _, err := as.nomad.ACLTokens().Create(&nomadapi.ACLToken{Name: "mine", Type: "management"}, nil)
	return err
}
