package fleet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// storesOf returns a CSV file with clusters in four regions.
func storesOf(n int) []byte {
	var b strings.Builder
	b.WriteString("name,address,labels.region,labels.size,labels.pci,values.TILLS\n")
	for i := range n {
		fmt.Fprintf(&b, "store-%07d,10.%d.%d.%d,region-%d,%s,%t,%d\n", i, i>>16&255, i>>8&255, i&255, i%4, []string{"small", "large"}[i%2], i%10 == 0, i%30)
	}
	return []byte(b.String())
}

// BenchmarkRead reads, checks and classifies 100,000 rows, without where and with one that
// they all satisfy.
func BenchmarkRead(b *testing.B) {
	b.Run("all", func(b *testing.B) { benchmarkRead(b, model.Selector{}) })
	b.Run("where", func(b *testing.B) {
		benchmarkRead(b, field(model.OpField, "labels.region", model.Selector{Op: model.OpSatisfy, Expr: "region"}))
	})
}

func benchmarkRead(b *testing.B, where model.Selector) {
	const n = 100_000
	data := storesOf(n)
	region := func(name string) *model.Selector {
		return &model.Selector{Op: model.OpField, Key: "labels", Args: []model.Selector{
			{Op: model.OpField, Key: "region", Args: []model.Selector{{Op: model.OpEqual, Text: name}}},
		}}
	}
	for b.Loop() {
		env := &model.Environment{Name: "prod", Positions: &model.Positions{}, Invalid: map[model.Ref]bool{}}
		for i := range 4 {
			env.ClusterTypes = append(env.ClusterTypes, model.ClusterType{Name: fmt.Sprintf("type-%d", i), Clusters: region(fmt.Sprintf("region-%d", i))})
		}
		env.Inventories = []model.Inventory{{
			Name: "stores", File: "stores.csv", Separator: ",",
			Columns: model.Columns{Name: "name", ClusterType: "clusterType", Address: "address", Description: "description"},
			Where:   where,
			Labels:  model.Selector{Op: model.OpField, Key: "size", Args: []model.Selector{{Op: model.OpSatisfy, Expr: `"small" | "large"`}}},
		}}
		f, ds := Read(source.NewFiles(b.TempDir(), source.Overlay{"stores.csv": data}), nil, env, func(e model.Expr, value string) bool {
			return value == "small" || value == "large" || string(e) == "region"
		})
		if len(ds) > 0 || len(f.Clusters) != n {
			b.Fatalf("%d clusters, %v", len(f.Clusters), ds)
		}
	}
}
