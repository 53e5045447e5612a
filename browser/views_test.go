package browser_test

import "testing"

func TestAViewOfTheJobsIsSavedAndOpenedAgain(t *testing.T) {
	t.Parallel()
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	p := open(t, s, "/jobs?q=queue:mail&state=scheduled&cols=due&cols=state")
	p.click(`details.save summary`)
	p.js(`document.querySelector("#save-view input").value = "Mail <b>tonight</b>"`)
	p.click(`#save-view button`)
	p.until(`document.querySelector("#views a[aria-current]")?.textContent === "Mail <b>tonight</b>"`)
	p.goTo("queues")
	p.until(`document.querySelector("#views a") && !document.querySelector("#views a[aria-current]")`)
	p.click(`#views a`)
	p.until(`location.pathname === "/jobs" && document.querySelector("input[name=q]")?.value === "queue:mail" && document.querySelector("#live tbody tr")`)
	p.click(`#views button`)
	p.until(`document.getElementById("views").hidden && document.activeElement.id === "main"`)
}

func TestAFilterSuggestsTheNextTerm(t *testing.T) {
	t.Parallel()
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--tenant", "acme", "--label", "region=eu")
	s.sluice(t, "enqueue", "mail-bulk", "{}")
	p := open(t, s, "/jobs")
	p.keys("/")
	p.keys("queue:mail-bulk")
	offered := `[...document.getElementById("words").options].map((o) => o.value).join("|")`
	p.until(offered + ` === "queue:mail-bulk"`)
	p.keys(" ", "l", "a")
	p.until(offered + ` === "queue:mail-bulk label.region:eu|queue:mail-bulk label."`)
	p.accessible("light")
}

func TestAScenarioIsSavedAndSimulatedAgain(t *testing.T) {
	t.Parallel()
	p := open(t, serving(t), "/simulator?scenario=noisy-tenant")
	p.js(`document.querySelector("form:has(textarea)").requestSubmit()`)
	p.until(`document.querySelector("#live .state-well, #live .state-failed")`)
	p.click(`details.save summary`)
	p.js(`document.querySelector("#save-view input").value = "Noisy tenant"`)
	p.click(`#save-view button`)
	p.until(`document.querySelector("#views a[aria-current]")?.textContent === "Noisy tenant"`)
	p.goTo("/queues")
	p.click(`#views a`)
	p.until(`location.pathname === "/simulator" && document.querySelector("textarea").value.includes("noisy-tenant") && document.querySelector("#live .state-well, #live .state-failed")`)
}
