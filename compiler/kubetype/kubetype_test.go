package kubetype_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/compiler/kubetype"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// object reads a manifest.
func object(t testing.TB, manifest string) model.Value {
	data, err := yaml.YAMLToJSON([]byte(manifest))
	var v model.Value
	if err == nil {
		err = v.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatalf("%s: %v", manifest, err)
	}
	return v
}

func TestCheck(t *testing.T) {
	container := func(fields string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {metadata: {labels: {build: x}}, spec: {containers: [{name: a, " + fields + "}]}}}\n"
	}
	const at = "spec.template.spec.containers[0]."
	for _, c := range []struct{ name, manifest, want, hint string }{
		{"data", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: env}\ndata: {DEBUG: true, NAME: x, WORKERS: 4}\n",
			"data.DEBUG of ConfigMap env is true, which is no string: quote it; data.WORKERS is 4, which is no string: quote it", "quote"},
		{"list of objects", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: env}, data: []}]\n",
			"data of ConfigMap env is a list, which is no mapping", "type"},
		{"many", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: env}\ndata: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1}\n",
			"h is 1, which is no string: quote it; and 2 more fields", ""},
		{"labels of a custom kind", "apiVersion: example.com/v1\nkind: Shop\nmetadata: {name: x, labels: {a.b/c: 1}}\nspec: {x: 1}\n",
			`metadata.labels."a.b/c" of Shop x is 1, which is no string: quote it`, ""},
		{"labels of pods", strings.Replace(container("image: x"), "build: x", "build: 3108617", 1),
			"spec.template.metadata.labels.build of Deployment web is 3108617, which is no string: quote it", ""},
		{"variable", container("image: x, env: [{name: A, value: true}]"), at + "env[0].value of Deployment web is true, which is no string: quote it", ""},
		{"image", container("image: web:3.108617e+06"), at + `image of Deployment web is "web:3.108617e+06", which is no image: invalid reference format`, `tag: "3108617"`},
		{"image of an ephemeral container", "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {ephemeralContainers: [{name: a, image: 'a b'}]}\n", `spec.ephemeralContainers[0].image of Pod x is "a b", which is no image`, ""},
		{"no image", container("image: ''"), "", ""},
		{"variable of Zarf in an image", container("image: '###ZARF_REGISTRY###/web:1'"), "", ""},
		{"port", container("image: x, ports: [{containerPort: '80'}]"), at + `ports[0].containerPort of Deployment web is "80", which is no whole number: write it without quotes`, ""},
		{"number with an exponent", container("image: x, securityContext: {runAsUser: 1.0006e+09}"), "", ""},
		{"large", container("image: x, ports: [{containerPort: 3000000000}]"), "is 3000000000, which has more than 32 bits", ""},
		{"bool", container("image: x, stdin: 'true'"), at + `stdin of Deployment web is "true", which is no bool: write true or false, without quotes`, ""},
		{"quantity", container("image: x, resources: {limits: {cpu: half}}"), at + `resources.limits.cpu of Deployment web is "half", which is no quantity, such as 500m or 1Gi`, ""},
		{"quantity that is a number", container("image: x, resources: {limits: {cpu: 0.5}}"), "", ""},
		{"variable of Flux", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: '${REPLICAS}'}\n", "", ""},
		{"placeholder of an Argo CD plugin", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {p: '<path:secret/db#password | base64encode>'}\n", "", ""},
		{"values of Secrets", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {p: hunter2}\nstringData: {q: 1234}\n",
			"data.p of Secret a is a string that is no Base64: write the text itself below stringData; stringData.q is a number, which is no string: quote it", ""},
		{"encrypted", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {p: 'ENC[AES256_GCM,data:x,type:str]'}\nsops: {mac: 'ENC[x]'}\n", "", ""},
		{"field of a newer version", container("image: x, fromTheFuture: 1"), "", ""},
		{"another case", container("image: x, Stdin: 1"), "", ""},
		{"null", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, labels: null, creationTimestamp: null}\nspec: {replicas: null}\n", "", ""},
		{"definition", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\nspec: {versions: [{name: v1, served: 'yes'}]}\n",
			`spec.versions[0].served of CustomResourceDefinition x is "yes", which is no bool`, ""},
	} {
		err := kubetype.Check(object(t, c.manifest))
		switch {
		case c.want == "" && err != nil, c.want != "" && err == nil:
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		case err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Hint(), c.hint)):
			t.Errorf("%s: %v (%s)\nwant %s (%s)", c.name, err, err.Hint(), c.want, c.hint)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the value of a Secret is in %v", c.name, err)
		}
	}
}

// rich are objects with fields of every type that the kinds of Kubernetes have.
var rich = []string{`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, generation: 1, creationTimestamp: "2026-01-31T12:00:00Z", labels: {a: b}, finalizers: [x.y/z], ownerReferences: [{apiVersion: v1, kind: Pod, name: x, uid: u, controller: true}]}
spec:
  replicas: 1
  paused: false
  selector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: In, values: [b]}]}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 1}}
  template:
    metadata: {labels: {a: b}, annotations: {c: d}}
    spec:
      nodeSelector: {a: b}
      hostNetwork: true
      terminationGracePeriodSeconds: 30
      tolerations: [{key: a, tolerationSeconds: 3}]
      initContainers: [{name: i, image: a/b}]
      containers:
      - name: a
        image: a/b:1
        command: [x]
        env: [{name: A, value: b}, {name: C, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}]
        ports: [{containerPort: 80}]
        livenessProbe: {httpGet: {port: http, httpHeaders: [{name: a, value: b}]}, periodSeconds: 3}
        resources: {limits: {cpu: 1, memory: 1Gi}}
      volumes: [{name: v, emptyDir: {sizeLimit: 1Gi}}, {name: w, projected: {defaultMode: 420, sources: [{configMap: {name: c}}]}}]
`, `
apiVersion: v1
kind: Secret
metadata: {name: s}
immutable: true
type: Opaque
data: {a: aGk=}
stringData: {b: c}
`, `
apiVersion: batch/v1
kind: CronJob
metadata: {name: c}
spec: {schedule: "* * * * *", suspend: false, startingDeadlineSeconds: 5, jobTemplate: {spec: {backoffLimit: 1, template: {spec: {restartPolicy: Never}}}}}
`, `
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: l}
spec: {acquireTime: "2026-01-31T12:00:00.000000Z", leaseDurationSeconds: 3}
`, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: x}
spec:
  group: example.com
  versions:
  - name: v1
    served: true
    schema: {openAPIV3Schema: {type: object, minLength: 3, maximum: 1.5, default: {a: 1}, required: [a], enum: [1, a], items: {type: string}, additionalProperties: false, properties: {a: {type: string}}}}
`}

// Check refuses exactly the values that cannot be decoded into the Go type, whichever value
// is at whichever place of an object.
func TestCheckDecodes(t *testing.T) {
	tried := 0
	for _, manifest := range rich {
		whole := object(t, manifest)
		if err := kubetype.Check(whole); err != nil {
			t.Fatal(err)
		}
		for _, other := range []string{`null`, `true`, `1`, `-1`, `1.0`, `1.5`, `3000000000`, `1e30`, `""`, `"x"`, `"1"`, `"aGk="`, `"2026-01-31T12:00:00Z"`, `[]`, `["x"]`, `[1]`, `{}`, `{"a": "b"}`, `{"a": 1}`} {
			everywhere(whole, object(t, other), func(v model.Value) {
				tried++
				decoded, err := decodes(v), kubetype.Check(v)
				if err != nil && (err.Fields[0].Image || strings.HasPrefix(err.Fields[0].Path, "data.")) {
					return // encoding/json reads a list as bytes, and API servers do not
				}
				if (decoded == nil) != (err == nil) {
					t.Errorf("%s\ndecoding: %v, Check: %v", v, decoded, err)
				}
			})
		}
	}
	if tried < 1000 {
		t.Errorf("only %d objects were tried", tried)
	}
}

// everywhere calls f with copies of a value that each have another value in one place. It
// never changes the fields that determine the kind of the object.
func everywhere(v, other model.Value, f func(model.Value)) {
	for i, e := range v.Elems() {
		put := func(w model.Value) {
			elems := append([]model.Value{}, v.Elems()...)
			elems[i] = w
			f(model.ListOf(elems...))
		}
		put(other)
		everywhere(e, other, put)
	}
	for i, field := range v.Fields() {
		put := func(w model.Value) {
			fields := append([]model.Field{}, v.Fields()...)
			fields[i].Value = w
			f(model.StructOf(fields...))
		}
		if field.Name != "apiVersion" && field.Name != "kind" {
			put(other)
		}
		everywhere(field.Value, other, put)
	}
}

// decodes reads an object as API servers do. They get the JSON that readers of YAML make of
// it.
func decodes(v model.Value) error {
	var plain struct{ APIVersion, Kind string }
	var whole any
	if err := json.Unmarshal(v.AppendJSON(nil), &whole); err != nil {
		return err
	}
	data, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &plain); err != nil {
		return nil // it is not of the kind any more
	}
	gv, _ := schema.ParseGroupVersion(plain.APIVersion)
	of := scheme.Scheme.AllKnownTypes()[gv.WithKind(plain.Kind)]
	if plain.Kind == "CustomResourceDefinition" {
		of = reflect.TypeFor[apiextensionsv1.CustomResourceDefinition]()
	}
	if of == nil {
		return nil
	}
	return strictjson.UnmarshalCaseSensitivePreserveInts(data, reflect.New(of).Interface())
}

func BenchmarkCheck(b *testing.B) {
	v := object(b, rich[0])
	b.ReportAllocs()
	for b.Loop() {
		if err := kubetype.Check(v); err != nil {
			b.Fatal(err)
		}
	}
}
