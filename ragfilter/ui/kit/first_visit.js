export default ({ setTriggerValue }) => {
  if (localStorage.getItem("ragfilter-toured")) return
  localStorage.setItem("ragfilter-toured", "yes")
  setTriggerValue("first", true)
}
