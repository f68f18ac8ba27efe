package evaluate

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/evaluate/registration"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/worker"
)

// The test binary is its own worker.
const workerArgument = "serve-as-a-worker"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerArgument {
		if err := worker.Serve(os.Stdin, os.Stdout, map[string]worker.Handler{registration.HandlerName: registration.Handler()}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func newPool(t *testing.T) *worker.Pool {
	pool := worker.NewPool(1, worker.Self(workerArgument))
	t.Cleanup(pool.Close)
	return pool
}

// TestRegistrationBeyond checks that a registration that exceeds all bounds has a diagnostic of
// its own. The cache must not store it, because it may finish the next time.
func TestRegistrationBeyond(t *testing.T) {
	const app = "-- app/deploy/app.cue --\npackage app\nimport \"list\"\n\nworkloads: shop: {}\n_y: list.Range(0, 3, 1)\n"
	const limits = "-- limits/x.cue --\npackage limits\nconfigs: x: match: {}\n"
	for name, c := range map[string]struct {
		text  string
		limit time.Duration
		want  string
	}{
		"time":   {"_x: [for a in list.Range(0, 3000, 1) for b in list.Range(0, 3000, 1) for c in list.Range(0, 3000, 1) if a+b+c < 0 {a}]\n", 2 * time.Second, "it takes more than 2s of processor time"},
		"memory": {"_x: (\"x\" * 1000000) * 1000000\n", time.Minute, "it needs more than a gibibyte of memory"},
		"stack":  {"_x: 0" + strings.Repeat(" + 1", 1_500_000) + "\n", time.Minute, "it recurses without end"},
	} {
		t.Run(name, func(t *testing.T) {
			cache, pool := newMemory(), newPool(t)
			pool.Limit = c.limit
			pkg, ds := evaluateRegistered(t, registrations+`workloads: own: workspace: "mine"`, app+c.text+limits, Options{Cache: cache, Workers: pool})
			if len(ds) != 1 {
				t.Fatalf("got %.300q", ds)
			}
			if ds[0] != "K3017 registration app cannot be evaluated: "+c.want+" @environments/dev/dev.cue:5:27" {
				t.Errorf("got %q", ds)
			}
			m := pkg.Model
			if !m.Invalid[model.Ref{Collection: "registrations", Name: "app"}] || len(m.Workloads) != 1 || len(m.Configs) != 1 || m.Configs[0].Invalid {
				t.Errorf("got %+v", m)
			}
			pool.Limit = time.Minute
			if _, ds = evaluateRegistered(t, registrations+`workloads: own: workspace: "mine"`, app+limits, Options{Cache: cache, Workers: pool}); len(ds) > 0 {
				t.Errorf("then %q", ds)
			}
		})
	}
}

// TestRegisteredFunctionBeyond checks that an endless function of the assignment fails only its
// own calls. Later calls of it must fail immediately.
func TestRegisteredFunctionBeyond(t *testing.T) {
	const files = `-- limits/x.cue --
package limits

import (
	"list"
	"kalypso.io/schema"
)

configs: loops: {
	#assignment: schema.#Assignment
	match: {}
	let n = len(#assignment.workload) * 1000
	values: A: len([for a in list.Range(0, n, 1) for b in list.Range(0, n, 1) for c in list.Range(0, n, 1) if a+b+c < 0 {a}])
}
configs: ends: {
	#assignment: schema.#Assignment
	match: {}
	values: B: "of \(#assignment.workload)"
}
-- app/deploy/app.cue --
package app
workloads: {}
`
	pool := newPool(t)
	pool.Limit = 2 * time.Second
	pkg, ds := evaluateRegistered(t, registrations, files, Options{Workers: pool})
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	var calls []function.Call
	for i := range 2*1000 + 1 {
		for _, name := range []string{"ends", "loops"} {
			calls = append(calls, function.Call{
				Entity: model.Ref{Collection: "configs", Name: name},
				Facts:  model.StructOf(model.Field{Name: "workload", Value: model.StringOf(fmt.Sprint("w", i))}),
			})
		}
	}
	out, err := pkg.Apply(t.Context(), calls)
	if err != nil || len(out) != len(calls) {
		t.Fatal(err, len(out))
	}
	for i, o := range out {
		b, ok := o.Values.Field("B")
		bad := slices.ContainsFunc(o.Diagnostics, func(d diag.Diagnostic) bool {
			return d.Code == diag.Unbounded && d.Message == "configs.loops of registration limits cannot be evaluated: it takes more than 2s of processor time"
		})
		if i%2 == 0 && (!ok || b.Final.Text() != fmt.Sprint("of w", i/2)) || i%2 == 1 && !bad {
			t.Fatalf("call %d: %+v", i, o)
		}
	}
}
