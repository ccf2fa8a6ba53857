package rpc

import (
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

// Generations travel with what is announced and what is to be loaded; too long ones do not.
func TestGenerations(t *testing.T) {
	id, long := serving.ModelID{Model: "m", Version: "1"}, strings.Repeat("x", serving.MaxGeneration+1)
	for sent, want := range map[string]string{"": "", "2yh4p3asi4hp@uvzothinekq6": "2yh4p3asi4hp@uvzothinekq6", long: long[1:]} {
		announced, err := ParseAnnounce(AppendAnnounce(nil, Announcement{ID: 7, State: StateReady, Model: id, Generation: sent}))
		if err != nil || len(announced) != 1 || announced[0].Definition() != (serving.Definition{ModelID: id, Generation: want}) {
			t.Errorf("announced %q: got %+v and error %v", sent, announced, err)
		}
		loads, err := ParseLoad(AppendLoad(nil, Load{Model: id, Generation: sent}))
		if err != nil || len(loads) != 1 || loads[0].Definition() != (serving.Definition{ModelID: id, Generation: want}) {
			t.Errorf("to load %q: got %+v and error %v", sent, loads, err)
		}
	}
	body := appendStr8(appendStr8(appendStr8(appendU32(append(appendU32(nil, 7), byte(StateReady), 0, 0, 0), 0), id.Model), id.Version), "")
	body = appendFieldString(body, announceGen, long)
	if _, err := ParseAnnounce(append(appendU32(appendU32(nil, 1), uint32(len(body))), body...)); err == nil {
		t.Error("a generation that is too long is taken")
	}
}
