package scrub_test

import (
	"fmt"

	"github.com/sluice-queue/sluice/scrub"
)

func ExampleText() {
	fmt.Println(scrub.Text(`dial tcp 203.0.113.7: login of ann@example.com failed, password="hunter2!"`))
	// Output: dial tcp [redacted:ip]: login of [redacted:email] failed, password="[redacted:password]"
}

func ExampleScrubber() {
	errors := scrub.New(scrub.Options{Without: []scrub.Family{scrub.IP}}) // operators need to see the hosts
	clean, findings := errors.Scrub("GET https://10.0.0.5/?user=ann@example.com: refused")
	fmt.Println(clean)
	fmt.Println(findings[0].Family, "by the rule", findings[0].Rule)
	// Output:
	// GET https://10.0.0.5/?user=[redacted:email]: refused
	// email by the rule email
}
