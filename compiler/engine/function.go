package engine

import (
	"context"
	"time"

	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// functions are those of the assignment in an environment's package, remembered:
// what a call gives follows from the function's sources and the facts.
type functions struct {
	in  *Inputs
	pkg *evaluate.Package
}

// Apply makes calls that the cache does not know.
func (f functions) Apply(ctx context.Context, calls []function.Call) ([]function.Outcome, error) {
	out := make([]function.Outcome, len(calls))
	keys := make([]cache.Key, len(calls))
	table := f.in.request.Meter.table(cache.Model, f.in.request.Platform.Module+" "+f.in.Name)
	var missing []int
	var todo []function.Call
	for i, c := range calls {
		keys[i] = f.callKey(c)
		if text, ok := table.Get(keys[i]); ok && model.Decode(text, &out[i]) == nil {
			continue
		}
		out[i] = function.Outcome{}
		missing, todo = append(missing, i), append(todo, c)
	}
	f.in.request.Meter.count(cache.Model, len(todo), len(calls)-len(todo))
	if len(todo) == 0 {
		return out, nil
	}
	defer f.in.request.Meter.took(cache.Model, time.Now())
	made, err := f.pkg.Apply(ctx, todo)
	if err != nil {
		return nil, err
	}
	for n, i := range missing {
		out[i] = made[n]
		if !diag.Passing(made[n].Diagnostics) {
			table.Put(keys[i], model.Encode(made[n]))
		}
	}
	return out, nil
}

// callKey identifies a call.
func (f functions) callKey(c function.Call) cache.Key {
	return f.in.key("function").String(f.in.Name).String(string(f.digest(c.Entity))).Bytes(model.Encode(c)).Sum()
}

// digest identifies what a function is made of.
func (f functions) digest(ref model.Ref) model.Digest {
	switch ref.Collection {
	case "configs":
		for i := range f.in.Model.Configs {
			if f.in.Model.Configs[i].Name == ref.Name {
				return f.in.Model.Configs[i].Digest
			}
		}
	case "namespaceServices":
		for i := range f.in.Model.NamespaceServices {
			if f.in.Model.NamespaceServices[i].Name == ref.Name {
				return f.in.Model.NamespaceServices[i].Digest
			}
		}
	case "reconcilers":
		for i := range f.in.Model.Reconcilers {
			if f.in.Model.Reconcilers[i].Name == ref.Name {
				return f.in.Model.Reconcilers[i].Digest
			}
		}
	}
	panic("compiler: there is no function " + ref.String()) // calls are made of the model's entities
}
