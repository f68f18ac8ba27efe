package main

import (
	"cmp"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// source is the data source of a dashboard.
type source int

const (
	views source = iota // of a PostgreSQL
	api                 // of the hub, and its metrics in a Prometheus
)

// The types of Grafana's data sources. People choose each by a variable, so that no dashboard has
// an id of theirs.
const (
	postgresql = "grafana-postgresql-datasource"
	infinity   = "yesoreyeram-infinity-datasource"
	metrics    = "prometheus"
)

// sources are the variables of data sources, by type.
var sources = map[string]string{postgresql: "database", infinity: "hub", metrics: "prometheus"}

func ref(kind string) common.DataSourceRef {
	uid := "${" + sources[kind] + "}"
	return common.DataSourceRef{Type: &kind, Uid: &uid}
}

// question is the query of a panel. The views answer sql. The hub answers promQL if the result is
// numbers over time, and otherwise returns a list of its API.
type question struct {
	sql            string
	promQL, legend string
	list           list
}

// list is a list in an answer of the API. Each word of columns is the selector of a field of its
// rows. =NAME renames the column, and :TYPE sets a type other than string.
type list struct{ address, field, columns string }

// target returns the query of a source, as Grafana stores it, and the source's type. over is true
// for a time series. Grafana's library has no types for the queries of PostgreSQL and Infinity.
func (q *question) target(of source, over bool) (cog.Builder[variants.Dataquery],
	common.DataSourceRef) {
	switch {
	case of == views:
		format := "table"
		if over {
			format = "time_series"
		}
		return raw{
			"refId": "A", "datasource": ref(postgresql), "format": format, "editorMode": "code",
			"rawQuery": true, "rawSql": q.sql,
		}, ref(postgresql)
	case q.promQL == "":
		query, _ := q.list.query()
		return query, ref(infinity)
	}
	b := prometheus.NewDataqueryBuilder().RefId("A").Datasource(ref(metrics)).
		EditorMode(prometheus.QueryEditorModeCode).Expr(q.promQL)
	if !over {
		return b.Instant(), ref(metrics)
	}
	return b.Range().LegendFormat(q.legend), ref(metrics)
}

// raw is a query as Grafana stores it.
type raw map[string]any

// Build returns it.
func (r raw) Build() (variants.Dataquery, error) { return variants.UnknownDataquery(r), nil }

// query returns the query of a list, and the places of its columns by name, because Infinity sorts
// them.
func (l *list) query() (q raw, places map[string]int) {
	address, parameters, _ := strings.Cut(l.address, "?")
	params, columns, places := []map[string]string{}, []map[string]string{}, map[string]int{}
	for p := range strings.SplitSeq(parameters, "&") {
		if name, value, found := strings.Cut(p, "="); found {
			params = append(params, map[string]string{"key": name, "value": value})
		}
	}
	for i, word := range strings.Fields(l.columns) {
		word, kind, _ := strings.Cut(word, ":")
		selector, name, _ := strings.Cut(word, "=")
		name = cmp.Or(name, selector)
		places[name] = i
		columns = append(columns,
			map[string]string{"selector": selector, "text": name, "type": cmp.Or(kind, "string")})
	}
	return raw{
		"refId": "A", "datasource": ref(infinity), "type": "json", "source": "url", "parser": "backend",
		"format": "table", "url": address,
		"url_options":   map[string]any{"method": "GET", "data": "", "params": params},
		"root_selector": l.field, "columns": columns,
	}, places
}

// variable is a variable whose values come from a source. At first, all values are selected.
func variable(of source, name, label string, q question) *dashboard.QueryVariableBuilder {
	everything, value := "All", "$__all"
	chosen := true
	query, from := dashboard.StringOrMap{String: &q.sql}, ref(postgresql)
	if of == api {
		asked, _ := q.list.query()
		from = ref(infinity)
		query = dashboard.StringOrMap{Map: map[string]any{
			"refId": "variable", "queryType": "infinity", "query": "", "infinityQuery": asked,
		}}
	}
	return dashboard.NewQueryVariableBuilder(name).Label(label).Datasource(from).Query(query).
		Refresh(dashboard.VariableRefreshOnDashboardLoad).Multi(true).IncludeAll(true).
		Current(dashboard.VariableOption{Selected: &chosen,
			Text:  dashboard.StringOrArrayOfString{String: &everything},
			Value: dashboard.StringOrArrayOfString{String: &value}})
}
