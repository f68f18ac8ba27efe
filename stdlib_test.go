package kalypso_test

import (
	"fmt"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/load"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The types of values accept and refuse these CUE literals.
func TestValueTypes(t *testing.T) {
	inst := load.Instances([]string{"./stdlib/value"}, &load.Config{Env: []string{"CUE_REGISTRY=none"}})[0]
	pkg := cuecontext.New().BuildInstance(inst)
	if pkg.Err() != nil {
		t.Fatal(pkg.Err())
	}
	quoted := func(texts string) (out []string) {
		for _, text := range strings.Fields(texts) {
			out = append(out, fmt.Sprintf("%q", text))
		}
		return out
	}
	label := strings.Repeat("a", 63)
	name253 := strings.Join([]string{label, label, label, strings.Repeat("a", 61)}, ".")
	for name, c := range map[string]struct{ accepted, refused []string }{
		"#Port": {[]string{"1", "65535"}, []string{"0", "-1", "65536", "80.0", `"80"`}},
		"#IP": {
			quoted("0.0.0.0 255.255.255.255 10.0.0.7 :: ::1 fd00::7 FD00::7 1:2:3:4:5:6:7:8 ::ffff:10.0.0.7"),
			append(quoted("256.0.0.1 10.0.0 10.0.0.07 010.0.0.7 0x0a.0.0.7 10 1::2::3 1:2:3:4:5:6:7 "+
				"1:2:3:4:5:6:7:8:9 12345:: fe80::1%eth0 [::1] 10.0.0.7:80 10.0.0.0/8 localhost"),
				`""`, `" 10.0.0.7"`, "[10, 0, 0, 7]", "'10.0.0.7'"),
		},
		"#CIDR": {
			quoted("0.0.0.0/0 10.20.0.0/16 10.20.0.7/16 10.0.0.7/32 ::/0 fd00::/8 fd00::7/128"),
			append(quoted("10.0.0.0/33 10.0.0.0/-1 10.0.0.0/08 10.0.0.0/ 10.0.0.0 fd00::/129 999.0.0.0/8 "+
				":::/8 10.0.0.0/255.0.0.0 fe80::1%eth0/64"), `""`, "'10.0.0.0/8'"),
		},
		"#Hostname": {
			quoted("a plc-7 mes.example.com MES.Example.com 7.example 10.0.0.7 xn--bcher-kva.example " +
				label + ".example " + name253),
			append(quoted("-a a- a..b .a a. a_b bücher.example *.example a:80 a/b "+label+"a.example "+
				name253+"a"), `""`, `"a b"`, "7"),
		},
		"#HostPort": {
			quoted("a:1 broker.example.com:1883 10.0.0.7:502 [fd00::7]:502 a:9999 a:59999 a:65535"),
			quoted("a a: :80 a:0 a:080 a:65536 a:65540 a:65600 a:66000 a:70000 a:100000 fd00::7:502 " +
				"[fd00::7] http://a:80"),
		},
		"#URL": {
			quoted("http://a https://a.example:8443/x?y=z#f mysql://west:8806/orders " +
				"kafka://a:9092,b:9092 http://[fd00::7]:80/ coap+tcp://a"),
			append(quoted("a a:80 http: http:// http:///x //a /x HTTP://a 1http://a http://me@a "+
				"http://me:secret@a/x mailto:a@example.com"), `"http://a b"`, `"http://a/b c"`, `""`),
		},
		"#HTTPSURL": {quoted("https://a https://a:8443/x"),
			quoted("http://a https:// HTTPS://a https://me@a wss://a")},
		"#Email": {
			quoted("a@b ops@example.com ops+plant7@example.com Ops.Plant@Example.COM o'neil@example.com " +
				strings.Repeat("a", 64) + "@example.com " + "a@" + name253[1:]),
			append(quoted("a @b a@ a@@b a@b@c .a@b a.@b a..b@c a@-b a@b. a@b_c a@[10.0.0.7] "+
				strings.Repeat("a", 65)+"@example.com "+"ab@"+name253[1:]),
				`"\"quoted\"@example.com"`, `"a b@example.com"`, `"A <a@example.com>"`,
				`"a(comment)@example.com"`, `"jürgen@example.com"`, `""`),
		},
		"#UUID": {
			quoted("6ba7b810-9dad-11d1-80b4-00c04fd430c8 6BA7B810-9DAD-11D1-80B4-00C04FD430C8 " +
				"00000000-0000-0000-0000-000000000000 ffffffff-ffff-ffff-ffff-ffffffffffff"),
			append(quoted("6ba7b8109dad11d180b400c04fd430c8 6ba7b810-9dad-11d1-80b4-00c04fd430c "+
				"6ba7b810-9dad-11d1-80b4-00c04fd430c8a 6ba7b81-09dad-11d1-80b4-00c04fd430c8 "+
				"6ba7b810-9dad-11d1-80b4-00c04fd430cg {6ba7b810-9dad-11d1-80b4-00c04fd430c8} "+
				"urn:uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8"), `""`),
		},
		"#Duration": {quoted("0s 30s 10m 1h30m 1.5h 500ms 90m 1h1h"),
			append(quoted("-5s +5s 5 0 s 1d 10us 1.h .5h 5S PT5M 1h-30m Z 2026-01-01T00:00:00Z"), `""`,
				`"1h 30m"`, "30")},
		"#Quantity": {
			append(quoted("0 1 1e3 1E3 100m 0.5Gi 1.5 2Ki 2Mi 2Gi 2Ti 2Pi 2Ei 1k 1M 1G 1T 1P 1E 007"),
				"10", "0"),
			append(quoted("-1 +1 .5 1. 1e 1e-3 1K 1ki 1gi 1GiB 1,5 0x10 100u m Gi NaN"), `""`, `"1 Gi"`,
				"0.5", "1.0"),
		},
		"#Version": {
			quoted("0.0.0 1.2.3 10.20.30 1.2.3-rc.1 1.2.3-0 1.2.3-0a 1.2.3-alpha-b.7.-- 1.2.3+build.007 " +
				"1.2.3-rc.1+build 99999999999999999999.0.0"),
			append(quoted("1 1.2 1.2.3.4 v1.2.3 01.2.3 1.02.3 1.2.03 1.2.3- 1.2.3-01 1.2.3-rc..1 1.2.3+ "+
				"1.2.3+a..b 1.2.3-rc_1 -1.2.3 1.2.x"), `""`, "1.2"),
		},
	} {
		of := pkg.LookupPath(cue.ParsePath(name))
		if of.Err() != nil {
			t.Fatal(of.Err())
		}
		fits := func(literal string) bool {
			v := cuecontext.New().CompileString(literal)
			if v.Err() != nil {
				t.Fatal(v.Err())
			}
			return of.Unify(v).Validate(cue.Concrete(true)) == nil
		}
		for _, literal := range c.accepted {
			if !fits(literal) {
				t.Errorf("%s refuses %s", name, literal)
			}
			if text := strings.Trim(literal, `"`); name == "#Quantity" {
				if _, err := resource.ParseQuantity(text); err != nil {
					t.Errorf("Kubernetes refuses %s: %v", literal, err)
				}
			}
		}
		for _, literal := range c.refused {
			if fits(literal) {
				t.Errorf("%s accepts %s", name, literal)
			}
		}
	}
}
