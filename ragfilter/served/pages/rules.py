from ragfilter import served

served.rules()
