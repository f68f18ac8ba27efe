package docgen

import "strings"

// escape returns text as Markdown that shows the text. Text between backticks stays code.
func escape(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		if i > 0 {
			b.WriteByte('`')
		}
		if i%2 == 0 {
			part = specials.Replace(part)
		}
		b.WriteString(part)
	}
	return b.String()
}

var specials = strings.NewReplacer("<", `\<`, "*", `\*`, "_", `\_`, "[", `\[`, "|", `\|`)

// code is text as a code span.
func code(text string) string {
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}
	return "`" + text + "`"
}

// cell returns Markdown for a cell of a table. It escapes bars, which would end the cell even in
// code.
func cell(markdown string) string { return strings.ReplaceAll(markdown, "|", `\|`) }

// prose returns a comment or help text as Markdown: paragraphs, and fences around indented text.
func prose(text, language string) string {
	var out []string
	for paragraph := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		if paragraph == "" {
			continue
		}
		if !strings.HasPrefix(paragraph, "\t") && !strings.HasPrefix(paragraph, "  ") {
			out = append(out, escape(paragraph))
			continue
		}
		block := dedent(paragraph)
		if last := len(out) - 1; last >= 0 && strings.HasSuffix(out[last], "\n```") {
			out[last] = strings.TrimSuffix(out[last], "```") + "\n" + block + "\n```"
			continue
		}
		out = append(out, "```"+language+"\n"+block+"\n```")
	}
	return strings.Join(out, "\n\n")
}

// dedent takes the indentation of the first line from all lines.
func dedent(text string) string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, indent)
	}
	return strings.Join(lines, "\n")
}

// either joins alternatives.
func either(items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:len(items)-1], ", ") + " or " + items[len(items)-1]
}
