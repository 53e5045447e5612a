package sluice_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/health"
)

// healthTable is the docs' table of the health checks of the stores.
func healthTable() string {
	var text strings.Builder
	text.WriteString("| store | check | looks at | figure | note | warning | error | besides |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, c := range health.Checks() {
		figure := ""
		if c.Figure != "" {
			figure = "`" + c.Figure + "`"
		}
		limit := func(value float64) string { return limitText(c, value) }
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", c.Kind, c.Name, c.Looks, figure, limit(c.Note), limit(c.Warning), limit(c.Error), c.Otherwise)
	}
	return text.String()
}

func limitText(c health.Check, value float64) string {
	if value == 0 {
		return ""
	}
	text := fmt.Sprintf("%.0f %s", value, c.Unit)
	switch {
	case c.Unit == "":
		text = fmt.Sprintf("%.0f %%", 100*value)
	case c.Unit == "seconds":
		text = time.Duration(value * float64(time.Second)).String()
		for _, none := range []string{"m0s", "h0m"} {
			if strings.HasSuffix(text, none) {
				text = text[:len(text)-2]
			}
		}
	case c.Unit == "bytes" && value >= 1<<30:
		text = fmt.Sprintf("%.0f GiB", value/(1<<30))
	case c.Unit == "bytes":
		text = fmt.Sprintf("%.0f MiB", value/(1<<20))
	case value >= 1e6:
		text = fmt.Sprintf("%.0f million %s", value/1e6, c.Unit)
	}
	if c.Below {
		return "below " + text
	}
	return text
}
