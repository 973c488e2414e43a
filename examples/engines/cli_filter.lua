-- cli_filter.lua - Slurm asks vramcast before a job is queued. Next to slurm.conf, with "CliFilterPlugins=lua" in it.
-- A job that says which card it runs on and how it starts is played on the null GPU where it is submitted:
--   sbatch --comment='vramcast: -g a100-40g-sxm -- python train.py --batch-size 64' job.sh
-- One that would run out of memory is refused with that answer. Jobs without such a comment pass.
local seconds = tonumber(os.getenv("VRAMCAST_FILTER_SECONDS") or "120")

function slurm_cli_pre_submit(options, offset)
	local words = options["comment"] and options["comment"]:match("^vramcast: (.*)$")
	if not words then
		return slurm.SUCCESS
	end
	-- The filter runs inside sbatch, as the user who submits: their words can do no more than they could themselves.
	local file = os.tmpname()
	local command = string.format("timeout %d vramcast dryrun --no-record --exit-code verdict %s > %s 2>&1; echo $? >> %s",
		seconds, words, file, file)
	os.execute(command)
	local said, code = "", 1
	for line in io.lines(file) do
		said, code = said .. (said == "" and "" or "\n") .. tostring(line), tonumber(line) or code
	end
	os.remove(file)
	if code == 3 then
		slurm.log_error("vramcast: this job would run out of memory.\n%s", said)
		return slurm.ERROR
	elseif code ~= 0 then
		slurm.log_info("vramcast: not checked (exit code %d): the job is queued all the same", code)
	end
	return slurm.SUCCESS
end

function slurm_cli_setup_defaults(options, early) return slurm.SUCCESS end
function slurm_cli_post_submit(offset, job, step) return slurm.SUCCESS end
