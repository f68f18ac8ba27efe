package expr

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/worker"
)

// The test binary is its own worker.
const workerArgument = "serve-as-a-worker"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerArgument {
		if err := worker.Serve(os.Stdin, os.Stdout, map[string]worker.Handler{HandlerName: Handler()}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestHeavy(t *testing.T) {
	for text, want := range map[string]bool{
		`int & >3`: false, `*"a" | "b" | string`: false, `close({a: string, b?: int})`: false, `{if a {b: string}, a: bool}`: false,
		`strings.MinRunes(3) & strings.MaxRunes(9)`: false, `net.IPv4`: false, `list.MaxItems(3)`: false, `"\(a)-b"`: false, `{a: b * 2, b: int}`: true,
		`{n: int, l: [for i in list.Range(0, n, 1) {i}]}`: true, `{n: int, s: strings.Repeat("x", n)}`: true, `{n: string, for c in strings.Split(n, "") {"\(c)": 1}}`: true,
		`{n: int, if n > 3 {for i in [1, 2] {"\(i)": i}}}`: true, `{n: int, if n > 3 {a: (1 | 2) & (2 | 3)}}`: true, `{n: int, if strings.Repeat("x", n) == "x" {a: 1}}`: true,
		`*1 | int`: false, `{`: false,
	} {
		if got := New(nil).heavyText(model.Expr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestElsewhere checks that workers return the same answers, except for calls that exceed the
// time limit. A second call with the same contract does not wait again.
func TestElsewhere(t *testing.T) {
	pool := worker.NewPool(1, worker.Self(workerArgument))
	defer pool.Close()
	here, there := New(nil), New(In(pool))
	value := func(n int) *model.Value {
		number, err := model.NumberOf(fmt.Sprint(n))
		if err != nil {
			t.Fatal(err)
		}
		v := model.StructOf(model.Field{Name: "n", Value: number})
		return &v
	}
	const urls = "{n: int & <3, urls: [for i in list.Range(0, n, 1) {\"https://\\(i)\"}], more?: string}"
	for _, c := range []Call{
		{Contract: urls, Value: value(2)}, {Contract: urls, Value: value(4)}, {Contract: urls}, {Terms: []model.Expr{urls, `{n: *1 | int}`}},
	} {
		if a, b := here.Eval([]Call{c}), there.Eval([]Call{c}); !reflect.DeepEqual(a, b) {
			t.Errorf("%+v: %+v, elsewhere %+v", c, a, b)
		}
	}
	pool.Limit = time.Second
	endless := Call{Contract: "{n: int, l: [for a in list.Range(0, n*1000, 1) for b in list.Range(0, n*1000, 1) for c in list.Range(0, n*1000, 1) if a+b+c < 0 {a}]}"}
	for n := range 20 {
		c := endless
		c.Value = value(n + 2)
		r := there.Eval([]Call{c})[0]
		if len(r.Problems) != 1 || !r.Problems[0].Unbounded || !strings.Contains(r.Problems[0].Message, "it takes more than 1s of processor time") {
			t.Fatalf("%+v", r)
		}
	}
	pool.Limit = time.Minute
	c := Call{Contract: urls, Value: value(2)}
	if r := there.Eval([]Call{c})[0]; len(r.Problems) > 0 {
		t.Errorf("%+v", r)
	}
}
