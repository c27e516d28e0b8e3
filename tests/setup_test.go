//go:build unix

package tests

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// placeholder is what the set-up scripts may write, and nothing else (O2).
const placeholder = `providers:
  a2mcp:
    baseUrl: http://a2mcp.invalid/v1
    api: anthropic-messages
    apiKey: not-a-real-key
    models:
      - id: offline
        name: no model (a2mcp)
        contextWindow: 100000
`

const npmInstall = "npm install --global --no-audit --no-fund --loglevel=error "

// O2: a machine with npm alone gets bun, the host, the placeholder and the extension.
func TestSetupOfAFreshMachine(t *testing.T) {
	onEveryShell(t, "npm a2mcp", func(m *machine) {
		m.run(0, nil, "setup: wrote a placeholder model: "+m.agent, "omp is installed: omp/18.2.3", "next: put omp on the PATH", "next: start omp;", "a2mcp' doctor")
		m.ran(npmInstall+"--allow-scripts=bun bun@1.4.4 @oh-my-pi/pi-coding-agent@18.2.3", "a2mcp install")
		m.hasPlaceholder(m.agent)
	})
}

// O2: run again, it installs nothing, and what it wrote once it does not write again.
func TestSetupTwice(t *testing.T) {
	onEveryShell(t, "npm a2mcp", func(m *machine) {
		m.run(0, nil)
		m.run(0, nil, "omp is here: "+m.prefix, "next: put omp on the PATH")
		m.hasPlaceholder(m.agent)
		if err := os.Remove(filepath.Join(m.agent, "models.yml")); err != nil {
			m.t.Fatal(err)
		}
		m.run(0, nil)
		m.ran(npmInstall+"--allow-scripts=bun bun@1.4.4 @oh-my-pi/pi-coding-agent@18.2.3", "a2mcp install", "a2mcp install", "a2mcp install")
		m.hasNo(filepath.Join(m.agent, "models.yml"))
	})
}

// O2: a machine that had omp gets the extension and no placeholder, wherever omp is.
func TestSetupBesideAHost(t *testing.T) {
	for name, place := range map[string]func(m *machine){
		"path":  func(m *machine) { m.program(filepath.Join(m.bin, "omp"), "omp") },
		"local": func(m *machine) { m.program(filepath.Join(m.home, ".local", "bin", "omp"), "omp") },
		"bun":   func(m *machine) { m.program(filepath.Join(m.home, ".bun", "bin", "omp"), "omp") },
		"variable": func(m *machine) {
			m.program(filepath.Join(m.home, "my omp"), "omp")
			m.env = append(m.env, "OMP="+filepath.Join(m.home, "my omp"))
		},
	} {
		onMachine(t, name, "npm bun a2mcp", func(m *machine) {
			place(m)
			m.run(0, nil, "omp is here: ", "next: start omp;")
			m.ran("a2mcp install")
			m.hasNo(m.agent)
		})
	}
	onMachine(t, "left out", "npm a2mcp", func(m *machine) {
		m.run(0, []string{"--no-host"}, "omp is left out")
		m.ran("a2mcp install")
		m.hasNo(m.agent)
	})
}

// O2: a file of models stays as it is, by whatever name, even a link to nowhere.
func TestSetupBesideModels(t *testing.T) {
	for _, name := range []string{"models.yml", "models.yaml", "models.json"} {
		onMachine(t, name, "npm a2mcp", func(m *machine) {
			path := filepath.Join(m.agent, name)
			m.write(path, "mine", 0o644)
			m.run(0, nil, "left alone: "+path)
			if data, err := os.ReadFile(path); err != nil || string(data) != "mine" {
				m.t.Errorf("%q %v", data, err)
			}
			if name != "models.yml" {
				m.hasNo(filepath.Join(m.agent, "models.yml"))
			}
		})
	}
	onMachine(t, "link", "npm a2mcp", func(m *machine) {
		m.mkdir(m.agent)
		if err := os.Symlink(filepath.Join(m.home, "elsewhere"), filepath.Join(m.agent, "models.yml")); err != nil {
			m.t.Fatal(err)
		}
		m.run(0, nil, "left alone")
		m.hasNo(filepath.Join(m.home, "elsewhere"))
	})
}

// O2: so does one that appears between the look and the write.
func TestSetupBesideModelsThatAppear(t *testing.T) {
	onEveryShell(t, "npm a2mcp", func(m *machine) {
		path := filepath.Join(m.bin, "mkdir")
		mkdir, err := os.Readlink(path)
		if err != nil {
			m.t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			m.t.Fatal(err)
		}
		m.write(path, "#!/bin/sh\n"+mkdir+` "$@"; case $2 in */agent) echo mine >"$2/models.yml" ;; esac`+"\n", 0o755)
		m.run(1, nil, "models.yml could not be written")
		if data, err := os.ReadFile(filepath.Join(m.agent, "models.yml")); err != nil || string(data) != "mine\n" {
			m.t.Errorf("%q %v", data, err)
		}
	})
}

// O2: what is installed by whom, and where to.
func TestSetupByWhatIsThere(t *testing.T) {
	onMachine(t, "bun alone", "bun a2mcp", func(m *machine) {
		m.run(0, nil, "omp is installed")
		m.ran("bun install --global @oh-my-pi/pi-coding-agent@18.2.3", "a2mcp install")
		m.hasPlaceholder(m.agent)
	})
	onMachine(t, "npm and bun", "npm bun a2mcp", func(m *machine) {
		m.run(0, nil)
		m.ran(npmInstall+"@oh-my-pi/pi-coding-agent@18.2.3", "a2mcp install")
	})
	onMachine(t, "prefix not writable", "npm a2mcp", func(m *machine) {
		m.write(m.prefix, "a file, which nobody can make folders in, not even root", 0o444)
		m.run(0, nil, "cannot be written to; using "+m.home+"/.local", `export PATH='`+m.home+`/.local/bin':"$PATH"`)
		m.ran(npmInstall+"--prefix "+m.home+"/.local --allow-scripts=bun bun@1.4.4 @oh-my-pi/pi-coding-agent@18.2.3", "a2mcp install")
		m.hasPlaceholder(m.agent)
	})
	onMachine(t, "neither", "a2mcp", func(m *machine) {
		m.run(1, nil, "neither npm nor bun", "https://nodejs.org", "https://bun.sh", "--no-host")
		m.ran()
		m.hasNo(m.agent)
	})
	onMachine(t, "npm that is broken", "a2mcp", func(m *machine) {
		m.program(filepath.Join(m.bin, "npm"), "broken")
		m.run(1, nil, "npm does not run")
		m.ran()
	})
	onMachine(t, "host that does not run", "npm a2mcp", func(m *machine) {
		m.env = append(m.env, "OMP_FAKE=#!/bin/sh\nexit 1")
		m.run(1, nil, "does not run; it needs bun 1.3.14")
	})
}

// O2: a rehearsal changes nothing, and tells all.
func TestSetupRehearsed(t *testing.T) {
	onEveryShell(t, "npm go", func(m *machine) {
		checkout := filepath.Join(m.home, "src")
		m.script = filepath.Join(checkout, "cmd", "setup", "setup.sh")
		m.copyScript(m.script)
		m.write(filepath.Join(checkout, "go.mod"), "module github.com/a2mcp/a2mcp\n", 0o644)
		before := tree(m.t, filepath.Dir(m.home))
		m.run(0, []string{"--dry-run"}, "would run: "+m.bin+"/npm install --global", "would write a placeholder model: "+m.agent,
			"would run: go build", "would run: "+checkout+"/bin/a2mcp install")
		if diff := cmp.Diff(before+"log\n", tree(m.t, filepath.Dir(m.home))); diff != "" {
			m.t.Errorf("the machine (-before +after):\n%s", diff)
		}
		m.ran()
		m.run(0, nil)
		m.ran(npmInstall+"--allow-scripts=bun bun@1.4.4 @oh-my-pi/pi-coding-agent@18.2.3", "go build -trimpath -ldflags -s -w -o bin/a2mcp ./cmd/a2mcp")
	})
}

// O2: which binary is installed; without one nothing is installed at all.
func TestSetupFindsTheBinary(t *testing.T) {
	onMachine(t, "named", "omp a2mcp", func(m *machine) {
		m.program(filepath.Join(filepath.Dir(m.script), "a2mcp"), "a2mcp")
		m.program(filepath.Join(m.home, "mine"), "a2mcp")
		m.run(0, []string{"--binary", "mine", "--agent-dir=an agent"}, "a2mcp is here: ./mine", "PI_CODING_AGENT_DIR='an agent';", "./mine doctor --agent-dir 'an agent'\n")
		m.ran("mine install --agent-dir an agent")
		m.program(filepath.Join(m.home, "it's mine"), "a2mcp")
		m.run(0, []string{"--binary=it's mine", "--agent-dir", "plain"}, `'./it'\''s mine' doctor --agent-dir plain`+"\n")
		m.run(1, []string{"--binary", "nothing"}, "nothing is no program")
	})
	onMachine(t, "beside", "omp", func(m *machine) {
		beside := filepath.Join(filepath.Dir(m.script), "a2mcp")
		m.program(beside, "a2mcp")
		m.run(0, nil, "a2mcp is here: "+beside)
	})
	onMachine(t, "nowhere", "npm go", func(m *machine) {
		m.run(1, nil, "there is no a2mcp beside this script or on the PATH")
		m.ran()
		m.hasNo(m.agent)
	})
	onMachine(t, "no Go", "npm", func(m *machine) {
		m.script = filepath.Join(m.home, "cmd", "setup", "setup.sh")
		m.copyScript(m.script)
		m.write(filepath.Join(m.home, "go.mod"), "module github.com/a2mcp/a2mcp\n", 0o644)
		m.run(1, nil, "no Go to build it with")
		m.ran()
	})
	onMachine(t, "misused", "omp a2mcp", func(m *machine) {
		m.run(2, []string{"--binary"}, "--binary needs a value")
		m.run(2, []string{"--binary="}, "--binary needs a value")
		m.run(2, []string{"--agent-dir", "--no-host"}, "--agent-dir needs a value")
		m.run(2, []string{"all"}, "all is not understood")
		m.run(0, []string{"--help"}, "usage: setup.sh")
		m.ran()
	})
}

// O2: script and binary mean the same agent folder, which is omp's.
func TestSetupAgentFolder(t *testing.T) {
	bin := binary(t)
	for name, env := range map[string][]string{
		"agent folder": {"PI_CODING_AGENT_DIR=an agent"},
		"profile":      {"OMP_PROFILE=work", "PI_PROFILE=old", "PI_CODING_AGENT_DIR=an agent"},
		"old profile":  {"PI_PROFILE=old", "PI_CONFIG_DIR=.other"},
		"no profile":   {"OMP_PROFILE=", "PI_PROFILE=old"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, []string{"/bin/sh"}, "npm")
			m.env = append(m.env, env...)
			m.run(0, []string{"--binary", bin})
			found := 0
			err := filepath.WalkDir(m.home, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.Name() == "a2mcp" && entry.IsDir() {
					found++
					m.hasPlaceholder(filepath.Dir(filepath.Dir(path)))
				}
				return err
			})
			if err != nil || found != 1 {
				t.Errorf("%d folders of the extension: %v", found, err)
			}
		})
	}
}

// O2: a profile that a2mcp refuses is not followed by the script either.
func TestSetupOddProfile(t *testing.T) {
	for _, profile := range []string{"../../x", ".", `a\b`, "c:x", "/x"} {
		onMachine(t, profile, "npm a2mcp", func(m *machine) {
			before := tree(m.t, m.home)
			m.env = append(m.env, "OMP_PROFILE="+profile)
			m.run(2, nil, "the profile "+profile+" is none of omp's; set OMP_PROFILE to the name alone")
			m.ran()
			if diff := cmp.Diff(before, tree(m.t, m.home)); diff != "" {
				m.t.Errorf("the home (-before +after):\n%s", diff)
			}
			m.run(0, []string{"--agent-dir", "mine"})
		})
	}
}

// O2: the scripts for either system install the same and write the same.
func TestSetupScriptsAgree(t *testing.T) {
	for _, name := range []string{"setup.sh", "setup.ps1"} {
		data, err := os.ReadFile(filepath.Join("../cmd/setup", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{placeholder, "bun@1.4.4", "@oh-my-pi/pi-coding-agent@18.2.3", "--allow-scripts=bun", "models.yaml", "models.json", "1.3.14"} {
			if !bytes.Contains(data, []byte(text)) {
				t.Errorf("%s lacks %q", name, text)
			}
		}
		for _, b := range data {
			if b > 126 { // Windows PowerShell would read it in the code page of the machine
				t.Fatalf("%s is not ASCII", name)
			}
		}
	}
}

// O2: PowerShell takes setup.ps1 for a program. It is not run: it is for Windows.
func TestSetupPowerShell(t *testing.T) {
	pwsh, err := exec.LookPath("pwsh")
	if err != nil {
		t.Skip("NOT CHECKED: pwsh is not on this machine, so nothing here has parsed cmd/setup/setup.ps1")
	}
	out, err := exec.Command(pwsh, "-NoProfile", "-NonInteractive", "-Command",
		`$errors = $null; $null = [Management.Automation.Language.Parser]::ParseFile((Resolve-Path ../cmd/setup/setup.ps1), [ref]$null, [ref]$errors); $errors; exit $errors.Count`).CombinedOutput()
	if err != nil {
		t.Errorf("parsing setup.ps1: %v\n%s", err, out)
	}
}
