package cli

import (
	"slices"
	"strings"

	"github.com/sluice-queue/sluice"
)

// examineTasks looks who leads upkeep, and who follows the runs at each engine. Tended says that some upkeep beats, waiting
// that something waits for one.
func examineTasks(tasks []sluice.Task, tended bool, waiting int) []finding {
	var out []finding
	for _, task := range tasks {
		if task.Engine == "" {
			out = append(out, examineUpkeep(task.Lead, tended, waiting))
			continue
		}
		out = append(out, examineFollowing(task))
	}
	return out
}

func examineUpkeep(lead sluice.Lead, tended bool, waiting int) finding {
	switch {
	case lead.Held:
		return well("upkeep", "%s leads, since %s", lead.Holder, ago(lead.Since))
	case tended:
		return finding{
			Check: "upkeep", Severity: sluice.SeverityWarning, What: "upkeep runs, and none leads it", Why: "nothing is recovered, expired or pruned until one does",
			Mend: "wait a few seconds if the one that led was killed: another takes over once its lease has passed; else look for «elect» in upkeep's log",
		}
	case waiting == 0:
		return well("upkeep", "nobody does it, and no job waits for it")
	}
	return finding{
		Check: "upkeep", Severity: sluice.SeverityError, What: "no upkeep was seen lately",
		Why: "jobs of workers that die are not handed out again, plans for settings are not carried out, and history is not pruned", Mend: "sluice upkeep",
	}
}

func examineFollowing(task sluice.Task) finding {
	what := task.Unfollowed()
	switch {
	case task.Lead.Held:
		return well("follow", "%s follows the runs at the engine %s, since %s", task.Lead.Holder, task.Engine, ago(task.Lead.Since))
	case what == "":
		return well("follow", "nobody follows the runs at the engine %s, and none is under way", task.Engine)
	}
	return finding{
		Check: "follow", Severity: sluice.SeverityError, What: what,
		Why:  "their jobs stay dispatched and hold their places in the limits, however the runs end",
		Mend: "sluice upkeep " + engineArgument(task.Engine),
	}
}

// engineArgument is how a command is given an engine of which only the name is known.
func engineArgument(name string) string {
	if name == defaultEngine {
		return "--temporal HOST:PORT"
	}
	return engineForm(name)
}

// engineCheckOf is the command that looks at the engines of the queues that a trouble is about.
func engineCheckOf(trouble string, rows []queueRow) string {
	command, engines := "sluice engine check", []string(nil)
	for _, q := range rows {
		if q.Engine == "" || !strings.Contains(trouble, sluice.TroubleOf(q.Name, "")) {
			continue
		}
		command += " " + q.Name
		if !slices.Contains(engines, q.Engine) {
			engines = append(engines, q.Engine)
		}
	}
	for _, engine := range engines {
		command += " " + engineArgument(engine)
	}
	return command
}

// otherTrouble is what troubles a holder besides what is told of tasks.
func otherTrouble(trouble string, tasks []sluice.Task) string {
	parts := slices.DeleteFunc(strings.Split(trouble, troubleMark), func(part string) bool {
		return part == "" || slices.ContainsFunc(tasks, func(t sluice.Task) bool { return t.Unfollowed() == part })
	})
	return strings.Join(parts, troubleMark)
}

// troubleMark is between the parts of a holder's trouble.
var troubleMark = strings.Trim(sluice.JoinTroubles([]string{"|", "|"}), "|")
