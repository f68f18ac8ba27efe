package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// number is a panel with one number; 24 columns are a row.
func number(title, unit string, width uint32, sql string) *stat.PanelBuilder {
	return stat.NewPanelBuilder().Title(title).Datasource(source()).Unit(unit).Span(width).Height(4).
		GraphMode(common.BigValueGraphModeNone).ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).WithTarget(rows(sql))
}

func lines(title, unit string, width uint32, sql string) *timeseries.PanelBuilder {
	return timeseries.NewPanelBuilder().Title(title).Datasource(source()).Unit(unit).Span(width).Height(9).
		LineInterpolation(common.LineInterpolationStepAfter).FillOpacity(20).WithTarget(series(sql))
}

func list24(title string, height uint32, sql string) *table.PanelBuilder {
	return table.NewPanelBuilder().Title(title).Datasource(source()).Span(24).Height(height).
		Footer(common.NewTableFooterOptionsBuilder().Reducer([]string{})).WithTarget(rows(sql))
}

// rollouts is how far releases are.
func rollouts() *dashboard.DashboardBuilder {
	count := func(state string) string {
		return `SELECT COUNT(*) FROM v_assignments WHERE state = '` + state + `' AND ` + chosen
	}
	d := page("kalypso-rollouts", "Kalypso rollouts", "What is wanted of clusters, and what they run.", "now-24h").
		WithPanel(number("Ok", "percentunit", 4, `SELECT AVG(CASE WHEN state = 'ok' THEN 1.0 ELSE 0 END) FROM v_assignments WHERE `+chosen))
	for _, state := range []string{"failed", "missing", "stale", "drifted", "behind"} {
		d = d.WithPanel(number(state, "short", 4, count(state)))
	}
	// A row of v_rollout is the count of a part from a time on: the sum of what each row changes is
	// the count of all parts at any time.
	return d.WithPanel(lines("Assignments on clusters", "short", 24, `WITH change AS (
  SELECT at_ms,
    ok - COALESCE(LAG(ok) OVER part, 0) AS ok, progressing - COALESCE(LAG(progressing) OVER part, 0) AS progressing, behind - COALESCE(LAG(behind) OVER part, 0) AS behind,
    drifted - COALESCE(LAG(drifted) OVER part, 0) AS drifted, stale - COALESCE(LAG(stale) OVER part, 0) AS stale, missing - COALESCE(LAG(missing) OVER part, 0) AS missing,
    failed - COALESCE(LAG(failed) OVER part, 0) AS failed
  FROM v_rollout WHERE `+chosen+`
  WINDOW part AS (PARTITION BY environment, ring, cluster_type, workload, version, base ORDER BY at_ms)
), total AS (
  SELECT TO_TIMESTAMP(at_ms / 1000.0) AS "time", SUM(SUM(ok)) OVER so_far AS ok, SUM(SUM(progressing)) OVER so_far AS progressing, SUM(SUM(behind)) OVER so_far AS behind,
    SUM(SUM(drifted)) OVER so_far AS drifted, SUM(SUM(stale)) OVER so_far AS stale, SUM(SUM(missing)) OVER so_far AS missing, SUM(SUM(failed)) OVER so_far AS failed
  FROM change GROUP BY at_ms WINDOW so_far AS (ORDER BY at_ms)
)
SELECT * FROM total WHERE $__timeFilter("time") ORDER BY "time"`)).
		WithPanel(list24("Rings", 9, `SELECT environment, `+ring+` AS ring, COUNT(*) AS wanted,
  COUNT(*) FILTER (WHERE state = 'ok') AS ok, COUNT(*) FILTER (WHERE state = 'progressing') AS progressing, COUNT(*) FILTER (WHERE state = 'behind') AS behind,
  COUNT(*) FILTER (WHERE state = 'drifted') AS drifted, COUNT(*) FILTER (WHERE state = 'stale') AS stale, COUNT(*) FILTER (WHERE state = 'missing') AS missing,
  COUNT(*) FILTER (WHERE state = 'failed') AS failed
FROM v_assignments WHERE `+chosen+` GROUP BY 1, 2 ORDER BY 1, 2`)).
		WithPanel(list24("Workloads", 12, `SELECT environment, workload, version, COUNT(*) AS wanted, COUNT(*) FILTER (WHERE state = 'ok') AS ok, COUNT(*) FILTER (WHERE state = 'failed') AS failed
FROM v_assignments WHERE `+chosen+` GROUP BY 1, 2, 3 ORDER BY 6 DESC, 1, 2, 3 LIMIT 500`))
}

// lagging is what does not run what is wanted, and what changed.
func lagging() *dashboard.DashboardBuilder {
	return page("kalypso-lagging", "Kalypso drift and history", "What does not run what is wanted, since when and why.", "now-24h").
		WithPanel(list24("Failed, stale and missing", 12, `SELECT environment, `+ring+` AS ring, cluster, workload, deployment_target, state, message, TO_TIMESTAMP(changed_ms / 1000.0) AS since
FROM v_assignments WHERE state IN ('failed', 'stale', 'missing') AND `+chosen+` ORDER BY changed_ms LIMIT 500`)).
		WithPanel(list24("Behind and drifted", 12, `SELECT environment, `+ring+` AS ring, cluster, workload, deployment_target, state, message, TO_TIMESTAMP(changed_ms / 1000.0) AS since
FROM v_drift WHERE `+chosen+` ORDER BY changed_ms LIMIT 500`)).
		WithPanel(list24("History", 12, `SELECT TO_TIMESTAMP(at_ms / 1000.0) AS "time", environment, cluster, workload, deployment_target, state, version, message
FROM v_history WHERE environment IN ($environment) AND $__timeFilter(TO_TIMESTAMP(at_ms / 1000.0)) ORDER BY change DESC LIMIT 500`))
}

// releases is how well releases go.
func releases() *dashboard.DashboardBuilder {
	const since = `$__timeFilter(TO_TIMESTAMP(at_ms / 1000.0)) AND ` + chosen
	lead := func(part string) string {
		return `SELECT PERCENTILE_CONT(` + part + `) WITHIN GROUP (ORDER BY (completed_ms - committed_ms) / 1000.0) FROM v_releases WHERE completed_ms IS NOT NULL AND ` + since
	}
	return page("kalypso-releases", "Kalypso releases", "How often something is released, how long it takes, and how often it fails.", "now-30d").
		WithPanel(number("Releases", "short", 6, `SELECT COUNT(*) FROM v_releases WHERE `+since)).
		WithPanel(number("Lead time (median)", "s", 6, lead("0.5"))).
		WithPanel(number("Lead time (9 of 10)", "s", 6, lead("0.9"))).
		WithPanel(number("Failed", "percentunit", 6, `SELECT AVG(CASE WHEN failed_ms IS NULL THEN 0.0 ELSE 1 END) FROM v_releases WHERE (completed_ms IS NOT NULL OR failed_ms IS NOT NULL) AND `+since)).
		WithPanel(lines("Releases in a day", "short", 24, `SELECT DATE_TRUNC('day', TO_TIMESTAMP(at_ms / 1000.0)) AS "time", environment AS metric, COUNT(*) AS releases
FROM v_releases WHERE `+since+` GROUP BY 1, 2 ORDER BY 1`)).
		WithPanel(list24("Releases", 14, `SELECT TO_TIMESTAMP(at_ms / 1000.0) AS "time", environment, `+ring+` AS ring, LEFT(base, 12) AS commit, subject, author,
  TO_TIMESTAMP(completed_ms / 1000.0) AS completed, TO_TIMESTAMP(failed_ms / 1000.0) AS failed
FROM v_releases WHERE `+since+` ORDER BY at_ms DESC LIMIT 500`))
}
