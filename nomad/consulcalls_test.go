//go:build servers

package nomad

import (
	"errors"
	"fmt"
	"time"

	consulapi "github.com/hashicorp/consul/api"
)

func seesTopsail(as role) error {
	for _, service := range []string{"topsail-gateway", "topsail-scheduler", "topsail-web"} {
		found, _, err := as.consul.Health().Service(service, "", false, nil)
		if err != nil || len(found) == 0 || found[0].Node.Address == "" {
			return fmt.Errorf("%d instances of %s are to be seen: %w", len(found), service, err)
		}
	}
	return nil
}

// seesNoLedger: Consul leaves out what may not be read, rather than refuse.
func seesNoLedger(as role) error {
	found, _, err := as.consul.Health().Service("ledger", "", false, nil)
	if len(found) > 0 {
		err = errors.New("it is to be seen")
	}
	return err
}

func writeService(as role) error {
	return as.consul.Agent().ServiceRegister(&consulapi.AgentServiceRegistration{Name: "topsail-sidecar", Port: 1})
}

func writeNode(as role) error {
	_, err := as.consul.Catalog().Register(&consulapi.CatalogRegistration{Node: "stranger", Address: "127.0.0.2"}, nil)
	return err
}

const leadKey = "topsail/scheduler/leader"

// holdLead takes the lead, keeps it, and gives it up.
func holdLead(as role) error {
	sessions, kv := as.consul.Session(), as.consul.KV()
	id, _, err := sessions.Create(&consulapi.SessionEntry{Name: "topsail-scheduler", TTL: "10s", LockDelay: time.Millisecond}, nil)
	if err != nil {
		return err
	}
	pair := &consulapi.KVPair{Key: leadKey, Value: []byte("me"), Session: id}
	held, _, err := kv.Acquire(pair, nil)
	if err == nil && !held {
		err = errors.New("the lead was not to be had")
	}
	_, _, renewing := sessions.Renew(id, nil)
	_, _, releasing := kv.Release(pair, nil)
	_, destroying := sessions.Destroy(id, nil)
	return errors.Join(err, renewing, releasing, destroying)
}

func readLead(as role) error {
	_, _, err := as.consul.KV().Get(leadKey, nil)
	return err
}

func writeKey(key string) func(role) error {
	return func(as role) error {
		_, err := as.consul.KV().Put(&consulapi.KVPair{Key: key}, nil)
		return err
	}
}
