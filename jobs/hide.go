package jobs

import (
	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/serving/catalog"
)

// Shown is the Text of the job that s says, with or without secrets.
func Shown(s Spec, secrets bool) (string, error) {
	job, err := Make(s)
	if err != nil {
		return "", err
	}
	if !secrets {
		hide(job)
	}
	return Text(job), nil
}

// hide leaves out of a job what catalog.Redact leaves out of a version: catalog.Hidden stands for the values of all variables,
// and for what is secret in the URLs that tasks fetch from and have in their commands. Secrets of a Nomad variable are in no job.
func hide(job *api.Job) {
	for _, group := range job.TaskGroups {
		for _, task := range group.Tasks {
			for name := range task.Env {
				task.Env[name] = catalog.Hidden
			}
			for key, value := range task.Config {
				task.Config[key] = redacted(value)
			}
			for _, a := range task.Artifacts {
				*a.GetterSource = catalog.RedactURL(*a.GetterSource)
			}
		}
	}
}

// redacted is a value of a driver's configuration, which may be part of the version that the job was made from.
func redacted(value any) any {
	switch value := value.(type) {
	case string:
		return catalog.RedactURLs(value)
	case []string:
		shown := make([]string, len(value))
		for i, one := range value {
			shown[i] = catalog.RedactURLs(one)
		}
		return shown
	}
	return value
}
