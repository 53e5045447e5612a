package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
)

// object is what a command is about: how to list all of its kind, and how to look at one.
type object struct{ list, look string }

// objects are the kinds, by the name of the command behind `sluice`. A command that is missing here is about several.
var objects = func() map[string]object {
	job := object{"`sluice jobs` lists all with their ids; finished jobs are deleted after a while", "look at the job: `sluice job ID`"}
	queue := object{"`sluice queues` lists all queues", "look at the queue: `sluice queues QUEUE`"}
	out := map[string]object{
		"batches":    {"`sluice batches ls` lists all", "look at the batch: `sluice batches show ID`"},
		"flows":      {"`sluice flows ls` lists all", "look at the flow: `sluice flows show ID`"},
		"schedules":  {"`sluice schedules ls` lists all", "look at the schedule: `sluice schedules show NAME`"},
		"operations": {"`sluice operations ls` lists all", "look at the operation: `sluice operations get ID`"},
		"limits":     {"`sluice limits ls` lists all", "look at the limit: `sluice limits get LIMIT`"},
		"alerts":     {"`sluice alerts rules` lists the rules", "look at the alerts: `sluice alerts ls`"},
		"settings":   {queue.list, "look at the settings: `sluice settings get QUEUE`"},
		"holders":    {"`sluice holders` lists all", "look at the processes: `sluice holders`"},
		"tokens":     {"`sluice tokens ls` lists all", "look at the tokens: `sluice tokens ls`"},
	}
	for _, name := range []string{"ask-engine", "cancel", "edit", "hold", "job", "release", "requeue", "reschedule", "resolve", "retry", "run-now", "wait", "why"} {
		out[name] = job
	}
	for _, name := range []string{"forecast", "pause", "queues", "resume", "stats"} {
		out[name] = queue
	}
	return out
}()

// adviseOn says what to do about an error that concerns the object of a command. Empty: the error is another one, or the
// command is about several kinds of objects.
func adviseOn(command *cobra.Command, err error) (code int, todo string) {
	words := strings.Fields(command.CommandPath())
	if len(words) < 2 {
		return 0, ""
	}
	of, known := objects[words[1]]
	if !known {
		return 0, ""
	}
	if name := command.Flags().Arg(0); command.Flags().NArg() == 1 {
		if _, err := parseID(name); err == nil {
			of.look = strings.Replace(of.look, " ID`", " "+name+"`", 1)
		}
		if sluice.CheckQueueName(name) == nil {
			of.look = strings.Replace(of.look, " QUEUE`", " "+name+"`", 1)
		}
	}
	var invalid *sluice.InvalidError
	switch {
	case errors.Is(err, sluice.ErrNotFound):
		return exitNotFound, of.list
	case errors.Is(err, sluice.ErrNotAllowed):
		return exitRefused, of.look
	case errors.Is(err, sluice.ErrConflict):
		return exitRefused, of.look + ", and repeat the change"
	case errors.As(err, &invalid) && invalid.Field == "id":
		list, _, _ := strings.Cut(of.list, "; ")
		return exitUsage, list
	}
	return 0, ""
}
