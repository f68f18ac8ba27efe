// Command dashboards writes the hub's dashboards for Grafana. It writes each dashboard twice. One
// version queries the views of a hub's PostgreSQL database, which are a stable contract
// (hub/store/migrations). The other one, <uid>-api.json, queries the hub itself, whose database may
// be SQLite. The command is a module of its own, so that kalypso does not depend on Grafana's
// modules:
//
//	cd hub/dashboards && go run . .
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dashboards FOLDER")
		os.Exit(2)
	}
	for _, of := range []source{views, api} {
		for _, page := range []func(source) *page{rollouts, lagging, releases} {
			if err := write(os.Args[1], page(of)); err != nil {
				fmt.Fprintln(os.Stderr, "dashboards:", err)
				os.Exit(1)
			}
		}
	}
}

// write writes a dashboard to <uid>.json.
func write(folder string, b cog.Builder[dashboard.Dashboard]) error {
	d, err := b.Build()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, *d.Uid+".json"), out.Bytes(), 0o644)
}
