package model_test

import (
	"maps"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/testing/fieldtest"
)

// TestDigests checks that the digest of an entity depends on all of its fields, except fields
// that describe its scope or do not affect a build.
func TestDigests(t *testing.T) {
	identified := func(m model.Environment) *model.Environment {
		for _, c := range model.Collections {
			c.Identify(&m, func(model.Ref) model.Digest { return "of the sources" })
		}
		return &m
	}
	fieldtest.Check(t, func() *model.Workspace { return &model.Workspace{} }, func(w *model.Workspace) model.Digest {
		return identified(model.Environment{Workspaces: []model.Workspace{*w}}).Workspaces[0].Digest
	}, map[string]string{"Description": "no file has it", "Owners": "they review what it declares"})
	where := map[string]string{
		"Match": "it decides which assignments get it", "Clusters": "as Match",
		"AllowEmpty": "it silences a diagnostic about Match",
	}
	config := maps.Clone(where)
	config["Facts"] = "of a function the digest of its sources counts"
	fieldtest.Check(t, func() *model.Config { return &model.Config{} }, func(c *model.Config) model.Digest {
		return identified(model.Environment{Configs: []model.Config{*c}}).Configs[0].Digest
	}, config)
	fieldtest.Check(t, func() *model.ConfigSchema { return &model.ConfigSchema{} }, func(s *model.ConfigSchema) model.Digest {
		return identified(model.Environment{ConfigSchemas: []model.ConfigSchema{*s}}).ConfigSchemas[0].Digest
	}, where)
	fieldtest.Check(t, func() *model.Contract { return &model.Contract{} }, func(c *model.Contract) model.Digest {
		return identified(model.Environment{Workloads: []model.Workload{{Requires: c}}}).Workloads[0].Requires.Digest
	}, map[string]string{"Ref": "it is where the contract is written"})
}
