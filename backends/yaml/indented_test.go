package yaml

import "testing"

func TestIndented(t *testing.T) {
	got, err := MarshalIndented(Mapping{
		{"hosts", []any{"a", Mapping{{"list", []string{"b"}}}, []string{"c"}}},
		{"text", TaggedString{"!unsafe", "{{ x }}"}},
		{"lines", []any{TaggedString{"!unsafe", "{{ x }}\ny\n"}}},
	})
	const want = `hosts:
  - a
  - list:
      - b
  - - c
text: !unsafe "{{ x }}"
lines:
  - !unsafe |
    {{ x }}
    y
`
	if err != nil || string(got) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
	if plain, err := Marshal(Mapping{{"hosts", []string{"a"}}}); err != nil || string(plain) != "hosts:\n- a\n" {
		t.Errorf("Marshal indents: %v\n%s", err, plain)
	}
}
