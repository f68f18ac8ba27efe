package gotemplate

import (
	"errors"
	"io"
	"path"
	"runtime"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/kalypso-io/kalypso/compiler/diag"
)

// shells are the languages that scripts are checked as, by the interpreter that
// their first line names.
var shells = map[string]syntax.LangVariant{
	"sh": syntax.LangPOSIX, "dash": syntax.LangPOSIX, "ash": syntax.LangPOSIX,
	"bash": syntax.LangBash, "ksh": syntax.LangMirBSDKorn, "mksh": syntax.LangMirBSDKorn,
}

// shell checks the output's syntax as that of the shell which its first line
// names, or else of sh.
func (o *output) shell() *diag.Diagnostic {
	interpreter := interpreterOf(string(o.text))
	language, known := shells[interpreter]
	if !known {
		d := o.broken("shell script", 1,
			"its first line names "+interpreter).Hinting("name sh or bash, or give the file the content " +
			"type text, which is not looked at")
		return &d
	}
	_, err := syntax.NewParser(syntax.Variant(language)).Parse(&shallowReader{strings.NewReader(string(o.text))}, o.path)
	if err == nil {
		return nil
	}
	line, message := 0, err.Error()
	var parse syntax.ParseError
	var other syntax.LangError
	switch {
	case errors.As(err, &parse):
		line, message = int(parse.Pos.Line()), parse.Text
	case errors.As(err, &other):
		line = int(other.Pos.Line())
		message = strings.TrimPrefix(message, o.path+":"+other.Pos.String()+": ")
	}
	d := o.broken("script for "+interpreter, line, message)
	if language == syntax.LangPOSIX {
		*d = d.Hinting("begin with #!/bin/bash where the script is for bash")
	}
	return d
}

// interpreterOf returns the program that a script's first line names; sh for none.
func interpreterOf(script string) string {
	first, _, _ := strings.Cut(script, "\n")
	command, named := strings.CutPrefix(first, "#!")
	words := strings.Fields(command)
	if !named || len(words) == 0 {
		return "sh"
	}
	name := path.Base(words[0])
	for _, word := range words[1:] {
		if name != "env" {
			break
		}
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			name = path.Base(word)
		}
	}
	return name
}

// deepest is how many calls of functions the parser may be in.
const deepest = 10_000

// shallowReader stops the parser where it is in too many calls: it calls itself
// for what is nested, without a bound, and no program survives the end of its
// stack.
type shallowReader struct{ io.Reader }

func (r *shallowReader) Read(p []byte) (int, error) {
	var caller [1]uintptr
	if runtime.Callers(deepest, caller[:]) > 0 {
		return 0, errors.New("it is nested too deeply")
	}
	return r.Reader.Read(p)
}
