<#
.SYNOPSIS
Sets up a2mcp on a fresh Windows machine, for omp.

.DESCRIPTION
The same as setup.sh, for Windows PowerShell 5.1 and PowerShell 7:

    powershell -ExecutionPolicy Bypass -File setup.ps1 [-Binary PATH] [-AgentDir DIR] [-NoHost] [-DryRun]

In this order, a line told for each, and safe to run again:

  1. The host. omp is taken from $env:OMP, from the PATH, or from where npm and bun
     put programs. Only if it is nowhere, it is installed from npm, by npm (bun with
     it, where there is none; into .local of the home folder where npm's own prefix
     cannot be written to) or by bun. With neither the script stops and says so.
  2. A placeholder model, so that a host without any model starts in all its modes:
     models.yml in the agent folder. Written only if step 1 installed the host, and
     only if there is no file of models; never changed.
  3. The binary. -Binary names it; else it is a2mcp.exe beside this script, or on
     the PATH, or it is built with Go from the checkout that this script is in.
  4. a2mcp install, which puts extension and binary into the agent folder.
  5. What to do next.

What steps 1 and 3 need is looked for before anything is changed. Nothing is run as
another user, no profile and no PATH is edited. The agent folder is omp's own:
PI_CODING_AGENT_DIR, OMP_PROFILE, PI_PROFILE and PI_CONFIG_DIR count.

.PARAMETER Binary
This a2mcp, rather than one beside the script, on the PATH, or built from the checkout.
.PARAMETER AgentDir
Agent folder of the host; default: what omp would use.
.PARAMETER NoHost
Leave out omp: neither look for it nor install it.
.PARAMETER DryRun
Say what would be done, and change nothing.
.PARAMETER Help
Show this text.
#>
[CmdletBinding()]
param(
    [string]$Binary,
    [string]$AgentDir,
    [switch]$NoHost,
    [switch]$DryRun,
    [switch]$Help
)

Set-StrictMode -Version 2
$ErrorActionPreference = 'Stop'

$BunPackage = 'bun@1.4.4'
$HostPackage = '@oh-my-pi/pi-coding-agent@18.2.3'

$Placeholder = @'
# Lets omp start without a model; a prompt to this one fails. Delete it once you have another.
providers:
  a2mcp:
    baseUrl: http://a2mcp.invalid/v1
    api: anthropic-messages
    apiKey: not-a-real-key
    models:
      - id: offline
        name: no model (a2mcp)
        contextWindow: 100000

'@

function Say([string]$Text) { Write-Host "setup: $Text" }

function Stop-Setup([string]$Text) {
    [Console]::Error.WriteLine("setup: $Text")
    exit 1
}

# A text so that a shell which reads it has it as one word.
function Format-Word([string]$Text) {
    if ($Text -match '^[A-Za-z0-9_.:\\/+=-]+$') { return $Text }
    return "'" + $Text.Replace("'", "''") + "'"
}

# npm's global prefix. To ask leaves no logs behind.
function Get-NpmPrefix([string]$Npm) {
    $before = $env:npm_config_cache
    $env:npm_config_cache = Join-Path ([IO.Path]::GetTempPath()) ('a2mcp-' + [Guid]::NewGuid())
    try {
        return [string](& $Npm prefix --global | Select-Object -First 1)
    } finally {
        Remove-Item -LiteralPath $env:npm_config_cache -Recurse -Force -ErrorAction SilentlyContinue
        $env:npm_config_cache = $before
    }
}

# Runs a program after telling it, unless this is a rehearsal; says whether it went well.
function Invoke-Told([string]$Program, [string[]]$Arguments) {
    if ($DryRun) {
        Say "would run: $Program $Arguments"
        return $true
    }
    Say "running: $Program $Arguments"
    & $Program @Arguments | Out-Host
    return ($LASTEXITCODE -eq 0)
}

# The path of a program on the PATH, or nothing. A .ps1 of the same name does not count:
# the execution policy may forbid it.
function Find-Program([string]$Name) {
    $found = Get-Command -Name $Name -CommandType Application -ErrorAction SilentlyContinue | Select-Object -First 1
    if ($found) { return $found.Source }
    return ''
}

# The first of some paths that is a file, or nothing.
function Find-File([string[]]$Paths) {
    foreach ($path in $Paths) {
        if (Test-Path -LiteralPath $path -PathType Leaf) { return $path }
    }
    return ''
}

# Whether a folder can be written to, or made. Only trying tells, on Windows.
function Test-Writable([string]$Folder) {
    while ($Folder -and -not (Test-Path -LiteralPath $Folder)) { $Folder = Split-Path -Parent $Folder }
    if (-not $Folder) { return $false }
    try {
        $path = Join-Path $Folder ('.a2mcp-' + [Guid]::NewGuid())
        [IO.File]::Create($path, 1, [IO.FileOptions]::DeleteOnClose).Dispose()
        return $true
    } catch {
        return $false
    }
}

# The profile whose agent folder is meant, or nothing. a2mcp refuses the same ones: they
# lead out of omp's folder.
function Get-Profile {
    if ($AgentDir) { return '' }
    $name = $env:OMP_PROFILE
    if ($null -eq $name) { $name = $env:PI_PROFILE }
    if ($name -eq 'default') { return '' }
    if ($name -match '^\.|[/\\:]') {
        [Console]::Error.WriteLine("setup: the profile $name is none of omp's; set OMP_PROFILE to the name alone, or give the folder with -AgentDir")
        exit 2
    }
    return $name
}

# The rule of a2mcp, which is that of omp.
function Get-AgentFolder {
    if ($AgentDir) { return $AgentDir }
    $config = '.omp'
    if ($env:PI_CONFIG_DIR) { $config = $env:PI_CONFIG_DIR }
    $root = Join-Path $env:USERPROFILE $config
    if ($ProfileName) { return [IO.Path]::Combine($root, 'profiles', $ProfileName, 'agent') }
    if ($env:PI_CODING_AGENT_DIR) { return $env:PI_CODING_AGENT_DIR }
    return Join-Path $root 'agent'
}

# For a host that nobody can have configured yet. A file by one of the older names is
# a file of models too: omp would not see it beside ours.
function Write-Placeholder {
    $agent = Get-AgentFolder
    $file = Join-Path $agent 'models.yml'
    $other = Find-File @($file, (Join-Path $agent 'models.yaml'), (Join-Path $agent 'models.json'))
    if ($other) {
        Say "models are configured already; left alone: $other"
        return
    }
    if ($DryRun) {
        Say "would write a placeholder model: $file"
        return
    }
    New-Item -ItemType Directory -Force -Path $agent | Out-Null
    $text = [Text.Encoding]::ASCII.GetBytes($Placeholder.Replace("`r`n", "`n"))
    $full = $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($file) # .NET has a current folder of its own
    # CreateNew, so that a file which appears meanwhile stays as it is.
    $stream = [IO.File]::Open($full, [IO.FileMode]::CreateNew, [IO.FileAccess]::Write)
    try { $stream.Write($text, 0, $text.Length) } finally { $stream.Dispose() }
    Say "wrote a placeholder model: $file"
}

if ($Help) {
    Get-Help -Full $PSCommandPath
    exit 0
}
if ($env:OS -ne 'Windows_NT') { Stop-Setup 'this script is for Windows; run setup.sh here' }
$ProfileName = Get-Profile

# 1. The host: where it is, or who installs it.
$omp = ''
$offPath = $false
$manager = ''
$bun = Find-Program 'bun'
$npm = Find-Program 'npm'
$npmPrefix = ''
$fallback = Join-Path $env:USERPROFILE '.local'
$bunFolder = Join-Path $env:USERPROFILE '.bun'
if ($env:BUN_INSTALL) { $bunFolder = $env:BUN_INSTALL }
if ($NoHost) {
    Say 'omp is left out, as asked'
} else {
    if ($npm) { $npmPrefix = Get-NpmPrefix $npm }
    if ($env:OMP) {
        $omp = Find-Program $env:OMP
        if (-not $omp) { Stop-Setup "`$env:OMP is $env:OMP, which is no program; correct it or remove it" }
    } else {
        $omp = Find-Program 'omp'
        if (-not $omp) {
            $places = @((Join-Path $fallback 'omp.cmd'), [IO.Path]::Combine($bunFolder, 'bin', 'omp.exe'))
            if ($npmPrefix) { $places += Join-Path $npmPrefix 'omp.cmd' }
            $omp = Find-File $places
            $offPath = [bool]$omp
        }
    }
    if ($omp) { Say "omp is here: $omp" }
    elseif ($npm) { $manager = 'npm' }
    elseif ($bun) { $manager = 'bun' }
    else {
        Stop-Setup ('omp is not here, and neither npm nor bun to install it with; install Node.js (https://nodejs.org) or bun ' +
            '(https://bun.sh) and run this again, or leave out the host with -NoHost')
    }
}

# 3. The binary: where it is, or what it is built from.
$checkout = ''
$beside = Join-Path $PSScriptRoot 'a2mcp.exe'
$module = [IO.Path]::GetFullPath([IO.Path]::Combine($PSScriptRoot, '..', '..'))
if ($Binary) {
    $a2mcp = Find-File @($Binary)
    if (-not $a2mcp) { Stop-Setup "$Binary is no program; give the path of an a2mcp binary with -Binary" }
    $a2mcp = (Resolve-Path -LiteralPath $a2mcp).ProviderPath
} else {
    $a2mcp = Find-File @($beside)
    if (-not $a2mcp) { $a2mcp = Find-Program 'a2mcp' }
}
if ($a2mcp) {
    Say "a2mcp is here: $a2mcp"
} elseif (Select-String -LiteralPath (Join-Path $module 'go.mod') -Pattern '^module github\.com/a2mcp/a2mcp$' -Quiet -ErrorAction SilentlyContinue) {
    if (-not (Find-Program 'go')) { Stop-Setup 'there is no a2mcp, and no Go to build it with; install Go (https://go.dev/dl) or give a binary with -Binary' }
    $checkout = $module
    $a2mcp = [IO.Path]::Combine($checkout, 'bin', 'a2mcp.exe')
} else {
    Stop-Setup 'there is no a2mcp beside this script or on the PATH; give one with -Binary, or run the script from a checkout'
}

# 1 and 2, done.
if ($manager) {
    $arguments = @('install', '--global')
    if ($manager -eq 'npm') {
        $arguments += @('--no-audit', '--no-fund', '--loglevel=error')
        if (-not $DryRun -and -not (Test-Writable $npmPrefix)) {
            Say "npm's global prefix $npmPrefix cannot be written to; using $fallback"
            $npmPrefix = $fallback
            $arguments += @('--prefix', $fallback)
        }
        if (-not $bun) { $arguments += @('--allow-scripts=bun', $BunPackage) } # bun's own script puts its binary in place
        $omp = Join-Path $npmPrefix 'omp.cmd'
        $program = $npm
    } else {
        $omp = [IO.Path]::Combine($bunFolder, 'bin', 'omp.exe')
        $program = $bun
    }
    if (-not (Invoke-Told $program ($arguments + $HostPackage))) { Stop-Setup "$manager did not install omp; its messages are above" }
    Write-Placeholder
    if (-not $DryRun) {
        if (-not (Find-File @($omp))) { Stop-Setup "$manager said that it installed omp, but $omp is not there; look at its messages above" }
        $offPath = -not (Find-Program 'omp')
        $env:PATH = (Split-Path -Parent $omp) + ';' + $env:PATH # omp looks for bun there
        $version = & $omp --version
        if ($LASTEXITCODE -ne 0) { Stop-Setup "$omp was installed but does not run; it needs bun 1.3.14 or later on the PATH (bun upgrade)" }
        Say "omp is installed: $version at $omp"
    }
}

# 3, done.
if ($checkout) {
    $env:CGO_ENABLED = '0'
    Push-Location -LiteralPath $checkout
    try {
        if (-not (Invoke-Told 'go' @('build', '-trimpath', '-ldflags=-s -w', '-o', 'bin\a2mcp.exe', './cmd/a2mcp'))) {
            Stop-Setup 'Go did not build a2mcp; its messages are above'
        }
    } finally {
        Pop-Location
    }
}

# 4. The extension.
$arguments = @('install')
if ($AgentDir) { $arguments += @('--agent-dir', $AgentDir) }
if (-not (Invoke-Told $a2mcp $arguments)) { Stop-Setup 'a2mcp install did not end well; its messages are above' }

# 5. What is left to do.
if ($offPath) { Say "next: put omp on the PATH: `$env:PATH = $(Format-Word ((Split-Path -Parent $omp) + ';')) + `$env:PATH" }
$with = ''
$of = ''
if ($AgentDir) {
    $with = " with PI_CODING_AGENT_DIR=$(Format-Word $AgentDir)"
    $of = " --agent-dir $(Format-Word $AgentDir)"
}
Say "next: start omp$with; it loads the bridge by itself, and /a2mcp in it shows the address"
Say "next: while omp runs, this examines all of it: & $(Format-Word $a2mcp) doctor$of"
