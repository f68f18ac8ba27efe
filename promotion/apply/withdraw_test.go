package apply

import "testing"

// TestWarned checks that a warning follows the marker, once, with the present objections.
func TestWarned(t *testing.T) {
	const marker, text = "<!-- kalypso:promotion v1 {} -->\n", "### Promote\n\nIt is good.\n"
	first := warned(marker+text, "freeze: prod is frozen")
	if want := marker + "> **Not to be merged now**: freeze: prod is frozen\n" + text; first != want {
		t.Errorf("%q", first)
	}
	if again, want := warned(first, "hold: wait"), marker+"> **Not to be merged now**: hold: wait\n"+text; again != want {
		t.Errorf("%q", again)
	}
	if got, want := warned(text, "hold: wait"), "> **Not to be merged now**: hold: wait\n"+text; got != want {
		t.Errorf("%q", got)
	}
}
