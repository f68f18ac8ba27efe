package diag

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

func TestFold(t *testing.T) {
	at := func(line int) model.Position { return model.Position{File: "a.cue", Line: line, Column: 1} }
	cause := New(WrongValue, "region must be a string").On("configs.west.values.region").In(at(2), "")
	needs := New(BrokenConfig, "config west has errors").On("configs.west").In(at(1), "").Following("configs.west")
	var empty []Diagnostic
	for i := range maxAlike + 1 {
		empty = append(empty, New(EmptyClusterType, fmt.Sprintf("nothing on %d", i)).On(fmt.Sprintf("clusterTypes.t%d", i)).In(at(i+1), "").Hinting("remove it"))
	}
	for _, test := range []struct {
		name string
		ds   []Diagnostic
		want string
	}{
		{"a consequence", []Diagnostic{needs.For("dev/a/x"), cause}, `error[K1103]: region must be a string
  a.cue:2:1  configs.west.values.region
  because of it: config west has errors on dev/a/x
`},
		{"consequences", []Diagnostic{needs.For("dev/a/x"), needs.For("dev/b/x"), cause}, `error[K1103]: region must be a string
  a.cue:2:1  configs.west.values.region
  and 2 more because of it: dev/a/x, dev/b/x
`},
		{"a consequence of what is not told", []Diagnostic{needs}, `error[K2008]: config west has errors
  a.cue:1:1
`},
		{"a consequence of an assignment's error", []Diagnostic{
			New(NoValue, "no value").For("dev/a/x"), New(DependsOn, "y depends on x").For("dev/a/y").Following("dev/a/x"),
		}, `error[K2006]: no value on dev/a/x
  because of it: y depends on x on dev/a/y
`},
		{"a consequence of a consequence", []Diagnostic{
			New(DependsOn, "z depends on y").For("dev/a/z").Following("dev/a/y"),
			New(DependsOn, "y depends on x").For("dev/a/y").Following("dev/a/x"), New(NoValue, "no value").For("dev/a/x"),
		}, `error[K2006]: no value on dev/a/x
  and 2 more because of it: dev/a/z, dev/a/y
`},
		{"a consequence of an error in a collection", []Diagnostic{needs.For("dev/a/x").Following("workloads", "configs"), cause}, `error[K1103]: region must be a string
  a.cue:2:1  configs.west.values.region
  because of it: config west has errors on dev/a/x
`},
		{"a circle of consequences", []Diagnostic{
			New(DependsOn, "x depends on y").For("dev/a/x").Following("dev/a/y"), New(DependsOn, "y depends on x").For("dev/a/y").Following("dev/a/x"),
		}, `error[K2103]: x depends on y on dev/a/x
error[K2103]: y depends on x on dev/a/y
`},
		{"equal ones", []Diagnostic{New(NotLocked, "it is not locked").In(at(1), ""), New(NotLocked, "it is not locked").In(at(5), "")}, `error[K3011]: it is not locked
  a.cue:1:1
  and 1 more of K3011: a.cue:5:1
`},
		{"some warnings", empty[:2], `warning[K1904]: nothing on 0
  a.cue:1:1  clusterTypes.t0
  hint: remove it
warning[K1904]: nothing on 1
  a.cue:2:1  clusterTypes.t1
  hint: remove it
`},
		{"many warnings", empty, `warning[K1904]: nothing on 0
  a.cue:1:1  clusterTypes.t0
  hint: remove it
  and 8 more of K1904: clusterTypes.t1, clusterTypes.t2, clusterTypes.t3 and 5 more
`},
	} {
		var b bytes.Buffer
		if err := WriteText(&b, test.ds, nil); err != nil {
			t.Fatal(err)
		}
		if b.String() != test.want {
			t.Errorf("%s:\n%swant\n%s", test.name, b.String(), test.want)
		}
	}
}
