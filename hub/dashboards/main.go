// Command dashboards writes the hub's dashboards for Grafana. They ask the views of a hub's
// PostgreSQL, which are a stable contract (hub/store/migrations). It is a module of its own, so that
// kalypso does not depend on Grafana's:
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
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dashboards FOLDER")
		os.Exit(2)
	}
	for _, d := range []*dashboard.DashboardBuilder{rollouts(), lagging(), releases()} {
		if err := write(os.Args[1], d); err != nil {
			fmt.Fprintln(os.Stderr, "dashboards:", err)
			os.Exit(1)
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

// source is the hub's database: people choose it by a variable, so that no dashboard has an id of
// theirs.
func source() common.DataSourceRef {
	kind, uid := "grafana-postgresql-datasource", "${database}"
	return common.DataSourceRef{Type: &kind, Uid: &uid}
}

// page begins a dashboard with the variables that all have.
func page(uid, title, description, from string) *dashboard.DashboardBuilder {
	return dashboard.NewDashboardBuilder(title).Uid(uid).Description(description).Tags([]string{"kalypso"}).
		Time(from, "now").Refresh("1m").Readonly().
		Link(dashboard.NewDashboardLinkBuilder("Kalypso").Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{"kalypso"}).AsDropdown(false).KeepTime(true).IncludeVars(true)).
		WithVariable(dashboard.NewDatasourceVariableBuilder("database").Label("Database").Type("grafana-postgresql-datasource")).
		WithVariable(list("environment", "Environment", `SELECT DISTINCT environment FROM v_releases ORDER BY 1`)).
		WithVariable(list("ring", "Ring", `SELECT DISTINCT `+ring+` FROM v_releases WHERE environment IN ($environment) ORDER BY 1`))
}

// ring is a ring's name, or a word where an environment has no rings: Grafana shows no empty text.
const ring = `COALESCE(NULLIF(ring, ''), 'none')`

// chosen selects what people have chosen.
const chosen = `environment IN ($environment) AND ` + ring + ` IN ($ring)`

// list is a variable with values of the database, of which all are chosen at first.
func list(name, label, query string) *dashboard.QueryVariableBuilder {
	everything, value := "All", "$__all"
	chosen := true
	return dashboard.NewQueryVariableBuilder(name).Label(label).Datasource(source()).Query(dashboard.StringOrMap{String: &query}).
		Refresh(dashboard.VariableRefreshOnDashboardLoad).Multi(true).IncludeAll(true).
		Current(dashboard.VariableOption{Selected: &chosen, Text: dashboard.StringOrArrayOfString{String: &everything}, Value: dashboard.StringOrArrayOfString{String: &value}})
}

// query is a question to the database: its answer is a table, or a time series.
type query struct{ format, sql string }

func rows(sql string) query   { return query{"table", sql} }
func series(sql string) query { return query{"time_series", sql} }

// Build returns the question as Grafana keeps it. The library has no type for PostgreSQL's.
func (q query) Build() (variants.Dataquery, error) {
	return variants.UnknownDataquery{"refId": "A", "datasource": source(), "format": q.format, "editorMode": "code", "rawQuery": true, "rawSql": q.sql}, nil
}
