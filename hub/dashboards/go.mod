module github.com/kalypso-io/kalypso/hub/dashboards

go 1.26.7

require github.com/grafana/grafana-foundation-sdk/go v0.0.22
