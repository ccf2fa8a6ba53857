package config

import (
	"errors"
	"path/filepath"
	"time"
)

// Options are the settings outside the tables of apps and models.
type Options struct {
	DataDir string  `toml:"data_dir" path:"true" default:"$XDG_STATE_HOME/topsail" help:"folder for what outlives a restart; without XDG_STATE_HOME it is ~/.local/state/topsail"`
	Gateway Gateway `toml:"gateway"`
	Web     Web     `toml:"web"`
	Ops     Ops     `toml:"ops"`
	Log     Log     `toml:"log"`
}

// Gateway is the edge that answers queries.
type Gateway struct {
	Addr           string        `toml:"addr" default:"127.0.0.1:1337" addr:"loopback" help:"address for queries and feedback"`
	CacheBytes     int           `toml:"cache_bytes" default:"33554432" min:"0" help:"memory of the prediction cache in bytes; 0 turns it off"`
	MaxBodyBytes   int           `toml:"max_body_bytes" default:"16777216" min:"1" help:"largest request body in bytes"`
	MaxBatch       int           `toml:"max_batch" default:"4096" min:"1" help:"most inputs in one request"`
	MaxConnections int           `toml:"max_connections" default:"4096" min:"1" help:"most client connections at a time"`
	DrainTimeout   time.Duration `toml:"drain_timeout_micros" default:"10000000" min:"0" help:"how long queries in flight may take to end when stopping, in microseconds"`
}

// Web is the management side: admin REST and the web UI.
type Web struct {
	Addr string `toml:"addr" default:"127.0.0.1:1338" addr:"loopback" help:"address of the admin API and the web UI"`
}

// Ops is the side for operators: metrics, health, profiles.
type Ops struct {
	Addr string `toml:"addr" default:"127.0.0.1:1390" addr:"loopback" help:"address of metrics, health checks and profiles"`
}

// Log is what is logged, and how.
type Log struct {
	Level  string `toml:"level" default:"info" enum:"debug info warn error" help:"least level that is logged: debug, info, warn or error"`
	Format string `toml:"format" default:"auto" enum:"auto text json" help:"auto, text or json; auto is text on a terminal and json elsewhere"`
}

// dataDir gives data_dir its default, which depends on the user.
func (l *loader) dataDir(env environment) {
	if l.sources["data_dir"] != sourceDefault {
		return
	}
	switch state, home := env["XDG_STATE_HOME"], env["HOME"]; {
	case filepath.IsAbs(state): // the XDG specification says to ignore a relative one
		l.doc.DataDir = filepath.Join(state, "topsail")
	case filepath.IsAbs(home):
		l.doc.DataDir = filepath.Join(home, ".local", "state", "topsail")
	default:
		l.refuse(errors.New("data_dir has no default, because neither XDG_STATE_HOME nor HOME is set: set TOPSAIL_DATA_DIR"))
	}
}
