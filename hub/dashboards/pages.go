package main

import (
	"maps"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// page is a dashboard of a source.
type page struct {
	*dashboard.DashboardBuilder
	of source
}

// newPage begins a dashboard with the variables that all dashboards have. The API selects
// environments; its lists have the rings as a column.
func newPage(of source, uid, title, description, from string) *page {
	tag, needed := "kalypso", []string{postgresql}
	if of == api {
		uid, title, tag, needed = uid+"-api", title+" (API)", "kalypso-api", []string{infinity, metrics}
	}
	links := dashboard.NewDashboardLinkBuilder("Kalypso").Type(
		dashboard.DashboardLinkTypeDashboards).Tags([]string{tag})
	d := dashboard.NewDashboardBuilder(title).Uid(uid).Description(description).Tags([]string{tag}).
		Time(from, "now").Refresh("1m").Readonly().Link(
		links.AsDropdown(false).KeepTime(true).IncludeVars(true))
	labels := map[string]string{postgresql: "Database", infinity: "Hub", metrics: "Prometheus"}
	for _, kind := range needed {
		d.WithVariable(
			dashboard.NewDatasourceVariableBuilder(sources[kind]).Label(labels[kind]).Type(kind))
	}
	d.WithVariable(variable(of, "environment", "Environment", question{
		sql:  `SELECT DISTINCT environment FROM v_releases ORDER BY 1`,
		list: list{"/v1/environments", "environments", "name"},
	}))
	if of == views {
		d.WithVariable(variable(of, "ring", "Ring", question{
			sql: `SELECT DISTINCT ` + ring +
				` FROM v_releases WHERE environment IN ($environment) ORDER BY 1`,
		}))
	}
	return &page{d, of}
}

// ring is a ring's name, or none if an environment has no rings: Grafana shows no empty text.
const ring = `COALESCE(NULLIF(ring, ''), 'none')`

// chosen selects the values that people have chosen: in SQL, in PromQL, and as a parameter of the
// API.
const (
	chosen       = `environment IN ($environment) AND ` + ring + ` IN ($ring)`
	chosenLabels = `environment=~"$environment"`
	chosenNames  = `environment=${environment:csv}`
)

// number adds a panel with one number; 24 columns are a row.
func (p *page) number(title, unit string, width uint32, q question) {
	target, from := q.target(p.of, false)
	p.WithPanel(stat.NewPanelBuilder().Title(title).Datasource(from).Unit(unit).Span(width).Height(4).
		GraphMode(common.BigValueGraphModeNone).WithTarget(target).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})))
}

// lines adds a panel with numbers over time.
func (p *page) lines(title, unit string, q question) {
	target, from := q.target(p.of, true)
	p.WithPanel(timeseries.NewPanelBuilder().Title(title).Datasource(from).Unit(unit).Span(24).Height(
		9).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).
			Placement(common.LegendPlacementBottom).ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti)).
		LineInterpolation(common.LineInterpolationStepAfter).FillOpacity(20).WithTarget(target))
}

// rows adds a panel with a table. units has the units of columns, by column name.
func (p *page) rows(title string, height uint32, q question, units map[string]string) {
	target, from := q.target(p.of, false)
	panel := table.NewPanelBuilder().Title(title).Datasource(from).Span(24).Height(height).Filterable(
		true).
		Footer(common.NewTableFooterOptionsBuilder().Reducer([]string{})).WithTarget(target)
	if p.of == api {
		_, places := q.list.query()
		order := map[string]any{"indexByName": places}
		panel.WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: order})
	}
	for _, name := range slices.Sorted(maps.Keys(units)) {
		panel.OverrideByName(name, []dashboard.DynamicConfigValue{{Id: "unit", Value: units[name]}})
	}
	p.WithPanel(panel)
}

// states are the columns of counts.
const states = ` wanted:number ok:number progressing:number behind:number drifted:number suspended:number stale:number` +
	` missing:number failed:number`

// rollouts is the dashboard with the progress of releases.
func rollouts(of source) *page {
	const assignments = `sum(kalypso_assignments{` + chosenLabels
	p := newPage(of, "kalypso-rollouts", "Kalypso rollouts",
		"What is wanted of clusters, and what they run.", "now-24h")
	p.number("Ok", "percentunit", 4, question{
		sql: `SELECT AVG(CASE WHEN state = 'ok' THEN 1.0 ELSE 0 END) FROM v_assignments WHERE ` +
			chosen,
		promQL: assignments + `,state="ok"}) / ` + assignments + `})`,
	})
	for _, state := range []string{"failed", "missing", "stale", "drifted", "behind"} {
		p.number(state, "short", 4, question{
			sql:    `SELECT COUNT(*) FROM v_assignments WHERE state = '` + state + `' AND ` + chosen,
			promQL: assignments + `,state="` + state + `"})`,
		})
	}
	// A row of v_rollout has the counts of a part from a time on. The sum of the changes up to a
	// time is the count of all parts at that time.
	p.lines("Assignments on clusters", "short", question{sql: `WITH change AS (
  SELECT at_ms,
    ok - COALESCE(LAG(ok) OVER part, 0) AS ok, progressing - COALESCE(LAG(progressing) OVER part, 0) AS progressing, behind - COALESCE(LAG(behind) OVER part, 0) AS behind,
    drifted - COALESCE(LAG(drifted) OVER part, 0) AS drifted, stale - COALESCE(LAG(stale) OVER part, 0) AS stale, missing - COALESCE(LAG(missing) OVER part, 0) AS missing,
    failed - COALESCE(LAG(failed) OVER part, 0) AS failed, suspended - COALESCE(LAG(suspended) OVER part, 0) AS suspended
  FROM v_rollout WHERE ` + chosen + `
  WINDOW part AS (PARTITION BY environment, ring, cluster_type, workload, version, base ORDER BY at_ms)
), total AS (
  SELECT TO_TIMESTAMP(at_ms / 1000.0) AS "time", SUM(SUM(ok)) OVER so_far AS ok, SUM(SUM(progressing)) OVER so_far AS progressing, SUM(SUM(behind)) OVER so_far AS behind,
    SUM(SUM(drifted)) OVER so_far AS drifted, SUM(SUM(stale)) OVER so_far AS stale, SUM(SUM(missing)) OVER so_far AS missing, SUM(SUM(failed)) OVER so_far AS failed,
    SUM(SUM(suspended)) OVER so_far AS suspended
  FROM change GROUP BY at_ms WINDOW so_far AS (ORDER BY at_ms)
)
SELECT * FROM total WHERE $__timeFilter("time") ORDER BY "time"`,
		promQL: `sum by (state) (kalypso_assignments{` + chosenLabels + `})`, legend: "{{state}}"})
	p.rows("Rings", 9, question{sql: `SELECT environment, ` + ring + ` AS ring, COUNT(*) AS wanted,
  COUNT(*) FILTER (WHERE state = 'ok') AS ok, COUNT(*) FILTER (WHERE state = 'progressing') AS progressing, COUNT(*) FILTER (WHERE state = 'behind') AS behind,
  COUNT(*) FILTER (WHERE state = 'drifted') AS drifted, COUNT(*) FILTER (WHERE state = 'stale') AS stale, COUNT(*) FILTER (WHERE state = 'missing') AS missing,
  COUNT(*) FILTER (WHERE state = 'failed') AS failed, COUNT(*) FILTER (WHERE state = 'suspended') AS suspended
FROM v_assignments WHERE ` + chosen + ` GROUP BY 1, 2 ORDER BY 1, 2`,
		list: list{"/v1/counts?by=environment,ring&" + chosenNames, "groups",
			"values.environment=environment values.ring=ring" + states}}, nil)
	p.rows("Workloads", 12, question{sql: `SELECT environment, workload, version, COUNT(*) AS wanted, COUNT(*) FILTER (WHERE state = 'ok') AS ok, COUNT(*) FILTER (WHERE state = 'failed') AS failed
FROM v_assignments WHERE ` + chosen + ` GROUP BY 1, 2, 3 ORDER BY 6 DESC, 1, 2, 3 LIMIT 500`,
		list: list{"/v1/counts?by=environment,workload,version&" + chosenNames, "groups",
			"values.environment=environment values.workload=workload values.version=version" + states}}, nil)
	return p
}

// lagging is the dashboard with the assignments that are not up to date, and with the history.
func lagging(of source) *page {
	assignments := func(states string) list {
		return list{"/v1/assignments?state=" + states + "&limit=500&" + chosenNames, "assignments",
			"environment ring cluster workload deploymentTarget state message changed=since:timestamp"}
	}
	p := newPage(of, "kalypso-lagging", "Kalypso drift and history", "What does not run what is "+
		"wanted, since when and why.", "now-24h")
	p.rows("Failed, stale and missing", 12, question{
		sql: `SELECT environment, ` + ring + ` AS ring, cluster, workload, deployment_target, state, message, TO_TIMESTAMP(changed_ms / 1000.0) AS since
FROM v_assignments WHERE state IN ('failed', 'stale', 'missing') AND ` + chosen + ` ORDER BY changed_ms LIMIT 500`,
		list: assignments("failed,stale,missing")}, nil)
	p.rows("Behind, drifted and suspended", 12, question{
		sql: `SELECT environment, ` + ring + ` AS ring, cluster, workload, deployment_target, state, message, TO_TIMESTAMP(changed_ms / 1000.0) AS since
FROM v_assignments WHERE state IN ('behind', 'drifted', 'suspended') AND ` + chosen + ` ORDER BY changed_ms LIMIT 500`,
		list: assignments("behind,drifted,suspended")}, nil)
	p.rows("History", 12, question{
		sql: `SELECT TO_TIMESTAMP(at_ms / 1000.0) AS "time", environment, cluster, workload, deployment_target, state, version, message
FROM v_history WHERE environment IN ($environment) AND $__timeFilter(TO_TIMESTAMP(at_ms / 1000.0)) ORDER BY change DESC LIMIT 500`,
		list: list{"/v1/history?since=${__from:date:iso}&until=${__to:date:iso}&limit=500&" + chosenNames,
			"transitions",
			"at=time:timestamp environment ring cluster workload deploymentTarget state version message"}},
		nil)
	return p
}

// releases is the dashboard with the measures of releases. The quantiles of several environments
// cannot be computed from the quantiles of each. The dashboard of the API therefore has a row for
// each environment.
func releases(of source) *page {
	const since = `$__timeFilter(TO_TIMESTAMP(at_ms / 1000.0)) AND ` + chosen
	lead := func(part string) question {
		return question{sql: `SELECT PERCENTILE_CONT(` + part +
			`) WITHIN GROUP (ORDER BY (completed_ms - committed_ms) / 1000.0) FROM v_releases WHERE completed_ms IS NOT NULL AND ` + since}
	}
	p := newPage(of, "kalypso-releases", "Kalypso releases", "How often something is released, how "+
		"long it takes, and how often it fails.", "now-30d")
	if of == views {
		p.number("Releases", "short", 6, question{sql: `SELECT COUNT(*) FROM v_releases WHERE ` + since})
		p.number("Lead time (median)", "s", 6, lead("0.5"))
		p.number("Lead time (9 of 10)", "s", 6, lead("0.9"))
		p.number("Failed", "percentunit", 6,
			question{sql: `SELECT AVG(CASE WHEN failed_ms IS NULL THEN 0.0 ELSE 1 END) FROM v_releases WHERE (completed_ms IS NOT NULL OR failed_ms IS NOT NULL) AND ` + since})
	} else {
		p.rows("Environments, until now", 7,
			question{list: list{"/v1/performance?since=${__from:date:iso}&" + chosenNames, "environments",
				"environment releases:number perWeek=per_week:number " +
					"leadMedianSeconds=lead_time_median:number leadP90Seconds=lead_time_p90:number " +
					"failureRate=failed:number restoreMedianSeconds=time_to_restore:number"}},
			map[string]string{"lead_time_median": "s", "lead_time_p90": "s", "failed": "percentunit",
				"time_to_restore": "s"})
	}
	p.lines("Releases in a day", "short", question{sql: `SELECT DATE_TRUNC('day', TO_TIMESTAMP(at_ms / 1000.0)) AS "time", environment AS metric, COUNT(*) AS releases
FROM v_releases WHERE ` + since + ` GROUP BY 1, 2 ORDER BY 1`,
		promQL: `sum by (environment) (increase(kalypso_releases_total{` + chosenLabels +
			`,result="started"}[1d]))`,
		legend: "{{environment}}"})
	p.rows("Releases", 14, question{sql: `SELECT TO_TIMESTAMP(at_ms / 1000.0) AS "time", environment, ` + ring + ` AS ring, LEFT(base, 12) AS commit, subject, author,
  TO_TIMESTAMP(completed_ms / 1000.0) AS completed, TO_TIMESTAMP(failed_ms / 1000.0) AS failed
FROM v_releases WHERE ` + since + ` ORDER BY at_ms DESC LIMIT 500`,
		list: list{"/v1/releases?since=${__from:date:iso}&limit=500&" + chosenNames, "releases",
			"at=time:timestamp environment ring base=commit subject author completed:timestamp " +
				"failed:timestamp"}}, nil)
	return p
}
